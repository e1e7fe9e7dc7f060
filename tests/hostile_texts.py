"""What a hostile agent, tool or repository would write to get out of a report."""

MARK = "EVIL"
"""Stands in every text, so that a test can ask where the text came out."""

HOSTILE: tuple[str, ...] = (
    "<script>alert('EVIL')</script>",
    "<img src=x onerror=alert(1)> EVIL",
    "</code></summary></details><h1>EVIL</h1><details>",
    "![EVIL](https://evil.example/pixel.png)",
    "[EVIL](javascript:alert(1)) <javascript:EVIL> https://evil.example/EVIL",
    "[EVIL]: https://evil.example 'x'",
    "@EVIL please look, fixes #1, EVIL/repo#2, GH-3, 0123456789abcdef0123456789abcdef01234567",
    "`````````` EVIL ``````````` `",
    "```\nEVIL\n```\n# EVIL\n~~~\n<b>EVIL</b>",
    "EVIL | a | b |\n|---|---|\n| EVIL \\| x |",
    "\n\n# EVIL\n\n- [ ] EVIL\n\n---\n\n    EVIL",
    "]]> EVIL <![CDATA[ &amp; &#0; &EVIL; <!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "\x1b[31mEVIL\x1b[0m \x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x07 \x9b2J EVIL",
    "\x00 EVIL \ufffe \uffff \x08\x0b\x0c \x7f \x85 \u2028 \ud800",
    "\u202eLIVE EVIL\u202c \u2066 EVIL \u2069 \U000e0041",
    "EVIL\r::error::EVIL\r\n::set-output name=a::EVIL",
    "x ::stop-commands::EVIL\n  ::add-mask::EVIL\n##vso[task.setvariable variable=a]EVIL",
    "EVIL ##teamcity[buildStatus status='SUCCESS']EVIL",
    "EVIL ##[error]EVIL ##VSO[task.complete result=Succeeded;]EVIL",
    "[[ATTACHMENT|/etc/passwd]] EVIL [[[ATTACHMENT|/etc/shadow]]]",
    "{{ EVIL }} {% EVIL %} ${EVIL} $(EVIL) `EVIL`",
    "EVIL\\",
    "EVIL" + "A" * 1_000_000,
    ("`" * 500 + "\n") * 200 + "EVIL",
    ("\n" * 50_000) + "EVIL",
    "\x1b[" * 50_000 + "EVIL",
)
