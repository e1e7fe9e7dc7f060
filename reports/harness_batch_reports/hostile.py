"""Text that an agent, its tools or a repository wrote, made harmless for the place it is shown in.

The text keeps its words and loses its powers: colour and cursor codes, characters that are not
legal in XML, direction overrides that make a reader see another order, and whatever a CI system,
a Markdown renderer or an attachment scanner would obey. Every report goes through here.
"""

import html
import re

_ESCAPES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    "|\x1b[\\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"  # OSC, DCS, SOS, PM, APC: titles, links
    "|\x1b[ -/]*[0-~]?"  # the short ones
    "|\x9b[0-?]*[ -/]*[@-~]?"  # CSI in one byte
)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x84\x86-\x9f]")
_UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BACKTICKS = re.compile("`+")
_SPAN_RUN, _FENCE_RUN = "`" * 40, "`" * 200
_SPAN_TOO_LONG, _FENCE_TOO_LONG = re.compile("`{41,}"), re.compile("`{201,}")
"""GitHub's renderer knows no code span of more than 80 backticks and counts a fence's up to 255:
what stands inside of longer ones would render."""
_COMMANDS = re.compile(
    r"^[^\S\n]*:(?=:)"
    r"|:(?=:(?:add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|notice|"
    r"remove-matcher|save-state|set-env|set-output|stop-commands|warning)\b)"
    r"|\#(?=\#(?:vso|teamcity)?\[)",
    re.MULTILINE | re.IGNORECASE,
)
_ATTACHMENTS = re.compile(r"\[(?=\[)")

_CUT = "\n… cut …\n"

SHOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands where a character was that cannot be shown."""


def clean(text: str) -> str:
    """The text with plain line feeds, without terminal codes and unprintable characters.

    What cannot be shown (NUL, U+FFFE, lone surrogates, direction overrides) becomes U+FFFD.
    """
    text = _ESCAPES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    return _UNSEEN.sub(SHOWN, _NOT_XML.sub(SHOWN, text))


def inert(text: str) -> str:
    """`clean`, and no line of it is a command to a CI system that reads logs.

    GitHub's `::name::` (at a line's start, or a known name anywhere) and `##[name]`, Azure's
    `##vso[` and TeamCity's `##teamcity[` get a blank in the middle.
    """
    return _COMMANDS.sub(_broken, clean(text))


def _broken(command: re.Match[str]) -> str:
    return f"{command[0]} "


def one_line(text: str, limit: int) -> str:
    """`inert` on one line of at most `limit` characters, cut with an ellipsis."""
    # Cut before cleaning too: a message of a megabyte is not worth a regex pass.
    line = " ".join(inert(text[: 8 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def excerpt(text: str, limit: int) -> str:
    """`inert` of at most `limit` characters; the middle is cut, since ends tell the most."""
    if len(text) > 4 * limit:
        text = text[: 2 * limit] + _CUT + text[-2 * limit :]
    text = inert(text).strip("\n")
    if len(text) <= limit:
        return text
    room = limit - len(_CUT)
    head = room // 3
    return text[:head] + _CUT + text[len(text) - (room - head) :]


def unattached(text: str) -> str:
    """No `[[` is left, with which JUnit readers (Jenkins, GitLab, Azure) pick up files."""
    return _ATTACHMENTS.sub("[ ", text)


def code(text: str, limit: int = 200) -> str:
    """A Markdown code span: no link, mention, image, issue reference or HTML comes out of it."""
    line = _SPAN_TOO_LONG.sub(_SPAN_RUN, one_line(text, limit))
    if not line:
        return ""
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def cell(text: str, limit: int = 200) -> str:
    """`code` for a table, where GitHub wants `|` escaped even in code."""
    return code(text, limit).replace("|", "\\|")


def fenced(text: str, limit: int, language: str = "") -> str:
    """A Markdown code block that nothing in the text can close."""
    body = _FENCE_TOO_LONG.sub(_FENCE_RUN, excerpt(text, limit))
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def html_code(text: str, limit: int = 200) -> str:
    """A `<code>` element for the inside of an HTML line such as `<summary>`."""
    return f"<code>{html.escape(one_line(text, limit))}</code>"


def json_inert(text: str) -> str:
    """JSON text (also inside YAML's double quotes) that no CI log reader obeys, same meaning."""
    return re.sub(r"\#(?=(?:vso|teamcity)?\[)", r"\\u0023", text, flags=re.IGNORECASE)


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
