"""Options of known programs that execute something else, or write where no redirection shows it.

`prog *` does not cover them: a rule names the option, or is exactly `*`. The list errs towards
too many (a cluster `-xo` counts as `-o`; an abbreviated long option counts).
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from harness_batch.permissions.shell_names import words as table
from harness_batch.permissions.shell_words import Word


@frozen
class Risk:
    """What to look for among a program's arguments."""

    letters: str = ""
    """Letters of short options, alone or in a cluster."""
    long: tuple[str, ...] = ()
    """Long options, which may be abbreviated or carry `=value`."""
    exact: frozenset[str] = frozenset()
    """Whole words: single-dash options such as `-exec`, or subcommands."""
    bundled: bool = False
    """The first argument may be a cluster of letters without a dash (tar)."""


def _longs(text: str) -> tuple[str, ...]:
    return tuple(f"--{name}" for name in text.split())


_AWK = Risk("fiElopd", _longs("file include exec load pretty-print profile dump-variables"))
_SSH = Risk("oFSJDLREi")
_PAGED = Risk(long=_longs("pager output"))

RISKS: Mapping[str, Risk] = {
    "find": Risk(exact=table("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")),
    "fd": Risk("xX", _longs("exec exec-batch")),
    "fdfind": Risk("xX", _longs("exec exec-batch")),
    "sort": Risk("oT", _longs("output compress-program temporary-directory")),
    "sed": Risk("iIf", _longs("in-place file")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    "tar": Risk(
        "IF",
        _longs(
            "checkpoint-action use-compress-program to-command info-script new-volume-script"
            " rmt-command rsh-command index-file"
        ),
        bundled=True,
    ),
    "rg": Risk(long=_longs("pre hostname-bin")),
    **dict.fromkeys(("ag", "ack", "bat", "batcat", "delta"), _PAGED),
    "man": Risk("PHC", _longs("pager html browser config-file")),
    **dict.fromkeys(("less", "more"), Risk("oOkK", _longs("log-file LOG-FILE lesskey-file"))),
    "zip": Risk("TbO", _longs("unzip-command test output-file temp-path")),
    "rsync": Risk("eT", _longs("rsh rsync-path log-file temp-dir")),
    **dict.fromkeys(("ssh", "scp", "sftp"), _SSH),
    "curl": Risk(
        "oOKTDcJE",
        _longs(
            "output remote-name remote-name-all config upload-file dump-header cookie-jar trace"
            " trace-ascii output-dir stderr libcurl etag-save hsts alt-svc engine netrc-file"
        ),
    ),
    "wget": Risk(
        "OoaPiexN",
        _longs(
            "output-document output-file append-output directory-prefix input-file use-askpass"
            " execute config save-cookies warc-file post-file body-file recursive mirror"
        ),
    ),
    "split": Risk(long=_longs("filter")),
    "shuf": Risk("o", _longs("output")),
    "iconv": Risk("o", _longs("output")),
    "tree": Risk("oR"),
    "yq": Risk("i", _longs("inplace in-place split-exp from-file")),
    "xxd": Risk("r"),
    "file": Risk("C", _longs("compile")),
    "go": Risk(exact=table("run generate -toolexec -exec -overlay -vettool -o")),
    "cargo": Risk(long=_longs("config")),
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang"),
        Risk("B", exact=frozenset(("-wrapper",)), long=_longs("plugin")),
    ),
    **dict.fromkeys(("nc", "ncat", "netcat"), Risk("ec", _longs("exec sh-exec lua-exec"))),
    "openssl": Risk(exact=frozenset(("-engine", "-out", "-provider", "engine"))),
    "jobs": Risk("x"),
    "ip": Risk(exact=frozenset(("netns", "vrf")), letters="b", long=_longs("batch")),
    "date": Risk("s", _longs("set")),
}

_GIT_LONG = _longs(
    "output ext-diff textconv upload-pack receive-pack exec extcmd open-files-in-pager template"
    " config config-env exec-path git-dir work-tree separate-git-dir output-directory tool"
    " help web"
)
_GIT_SUBCOMMANDS = table(
    "bisect submodule filter-branch difftool mergetool send-email instaweb p4 svn hook daemon"
    " credential fast-import maintenance upload-pack receive-pack shell http-backend help"
    " cvsserver archimport cvsimport quiltimport request-pull gui citool alias scalar"
)
_GIT_LETTERS = {
    "grep": "O",
    "rebase": "x",
    "format-patch": "o",
    "archive": "o",
    "clone": "cu",
    "fetch": "u",
    "ls-remote": "u",
    "init": "",
}
_MESSAGED = table("commit tag merge stash notes")
_MESSAGE = re.compile(r"-[aqsn]*m|--message")
"""Options whose next word is text, whatever it begins with."""
GIT_VALUES = table("-C -c --git-dir --work-tree --namespace --config-env --exec-path")
"""Options of git itself that take the next word."""

_AWK_RUNS = re.compile(r"system|getline|[|>@]|printf?\s*>|ENVIRON|extension")
_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_SED_SAFE = re.compile(
    r"(?:[\s;{}]*+"
    rf"(?:{_SED_ADDRESS}(?:,(?:[+~]?\d+|{_SED_ADDRESS}))?\s*+!?\s*+)?"
    r"(?:[pdqQDPNnGgHhxlF=]|s([/|#,:@!])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1"
    r"[gpI0-9]*+)[ \t]*+(?=[;}\n]|\Z))*+[\s;{}]*"
)
"""Addresses with commands that neither run nor write; possessive, so that nothing backtracks."""


def options_of(program: str, words: Sequence[Word]) -> tuple[str, ...]:
    """The risky options, as they are spelled (a value after `=` cut off)."""
    if program == "git":
        return tuple(_git(words))
    risk = RISKS.get(program)
    if risk is None:
        return ()
    found = [_option(word.value, risk) for word in words[1:] if word.value is not None]
    if risk.bundled and len(words) > 1 and words[1].value and words[1].value[0] != "-":
        first = words[1].value
        found += [first] if set(first) & set(risk.letters) and "/" not in first else []
    return tuple(dict.fromkeys(option for option in found if option))


def doubt_about(program: str, words: Sequence[Word]) -> str | None:
    """Why the arguments of such a program cannot be judged; None when they can."""
    if program in RISKS or program == "git":
        plain = False
        message = _MESSAGE if program == "git" and git_subcommand(words) in _MESSAGED else None
        ends = program not in ("find", "tar") and len(words) > 1 and words[1].value != "--"
        for before, word in pairwise(words):
            if message and not word.split and message.fullmatch(before.value or ""):
                continue
            if word.loose and not plain:
                return (
                    f"`{word.shown}` could become an option of {program} that executes or writes"
                    " (a file name that begins with `./`, or quotes, make it plain)"
                )
            plain = plain or (word.value == "--" and ends)
    if program == "sed":
        return _sed_doubt(words)
    if program in ("awk", "gawk", "mawk", "nawk"):
        return _awk_doubt(words)
    return None


def _option(word: str, risk: Risk) -> str | None:
    if word in risk.exact:
        return word
    if word == "--text":  # of its own right, no abbreviation of --textconv
        return None
    if word.startswith("--"):
        name = word.partition("=")[0]
        return name if len(name) > 2 and any(o.startswith(name) for o in risk.long) else None
    if word.startswith("-") and set(word[1:].partition("=")[0]) & set(risk.letters):
        return word.partition("=")[0]
    return None


def _git(words: Sequence[Word]) -> list[str]:
    found: list[str] = []
    place = 1
    while place < len(words):
        value = words[place].value or ""
        if not value.startswith("-"):
            break
        option = value.partition("=")[0]
        found += [option] if option[:2] in ("-c", "--") and option != "--no-pager" else []
        place += 2 if value in GIT_VALUES else 1
    rest = [word.value or "" for word in words[place:]]
    subcommand = next(iter(rest), "")
    if subcommand in _GIT_SUBCOMMANDS:
        found.append(subcommand)
    risk = Risk(_GIT_LETTERS.get(subcommand, ""), _GIT_LONG)
    found += [risky for word in rest[1:] if (risky := _option(word, risk))]
    return list(dict.fromkeys(found))


def git_subcommand(words: Sequence[Word]) -> str | None:
    """What `git ...` does, past its global options; None when there is nothing or it is unknown."""
    place = 1
    while place < len(words) and (words[place].value or "").startswith("-"):
        place += 2 if words[place].value in GIT_VALUES else 1
    return words[place].value if place < len(words) else None


def _sed_doubt(words: Sequence[Word]) -> str | None:
    """Scripts of sed may execute (`e`), write (`w`) and read (`r`) files: only plain ones pass."""
    arguments = [word.value for word in words[1:]]
    if "--sandbox" in arguments:
        return None
    scripts: list[str | None] = [
        arguments[i + 1] for i, a in enumerate(arguments[:-1]) if a in ("-e", "--expression")
    ]
    scripts += [a.partition("=")[2] for a in arguments if a and a.startswith("--expression=")]
    clustered = [a for a in arguments if a and a[0] == "-" and a[1:2] != "-" and "e" in a[1:]]
    if any(a != "-e" for a in clustered):
        return "write `-e` of sed as a word of its own"
    if not scripts:
        scripts = [a for a in arguments if a is None or not a.startswith("-")][:1]
    if all(script is not None and _SED_SAFE.fullmatch(script) for script in scripts):
        return None
    return "a sed script other than plain addresses with s, p, d, q can execute and write"


def _awk_doubt(words: Sequence[Word]) -> str | None:
    """Programs of awk may call system(), open pipes and write files."""
    if any(word.value is None or _AWK_RUNS.search(word.value) for word in words[1:]):
        return "an awk program that calls system or getline, pipes, redirects or is not literal"
    return None
