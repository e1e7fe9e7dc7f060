"""A finished run as one HTML file: it opens from disk, asks the network for nothing, runs no text.

The page's own script and style are named by their hashes in its Content-Security-Policy, so that
nothing else on it can run, whatever an agent wrote. Texts of others reach it in two ways only:
escaped by the template, or as JSON that the script reads and puts on the page as text. The
charting library lies in `page/vendor/` as its registry hands it out.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files

from attrs import frozen
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from harness_batch_reports import figures
from harness_batch_reports.hostile import clean, one_line
from harness_batch_reports.html_page import page
from harness_batch_reports.html_session import Room, Told, as_script, document
from harness_batch_reports.records import BatchReport
from harness_batch_reports.usage import Usage

LIBRARY = "vendor/chart.umd.min.js"
SCRIPTS = ("dom.js", "charts.js", "sessions.js", "transcript.js", "main.js")
"""The page's own script, in order; together they are one function."""
_SOURCE_MAP = re.compile(r"\n//# sourceMappingURL=.*")


@frozen
class Inline:
    """The inside of a `<script>` or `<style>`, and what the policy calls it."""

    text: Markup

    @classmethod
    def of(cls, text: str) -> "Inline":
        """Text of ours or of the library's; its line ends are what an HTML parser leaves."""
        return cls(Markup(text.replace("\r\n", "\n")))  # noqa: S704  # the package's own files

    @property
    def source(self) -> str:
        """`'sha256-…'`."""
        return f"'sha256-{b64encode(sha256(self.text.encode()).digest()).decode()}'"


def render(report: BatchReport, usage: Usage, told: Iterable[Told]) -> bytes:
    """The page in UTF-8. `told` are the sessions in the order of `worst_first`, then children."""
    library = Inline.of(_SOURCE_MAP.sub("", _file(LIBRARY)))
    script = Inline.of("(() => {\n" + "".join(_file(name) for name in SCRIPTS) + "})();\n")
    style = Inline.of(_file("report.css"))
    room = Room()
    # JSON for a script element: `as_script` leaves nothing in it that a parser would look at.
    sessions = [
        (one.transcript.session_id, Markup(as_script(document(one, room))))  # noqa: S704
        for one in told
    ]
    about = page(report, usage)
    template = _environment().get_template("report.html.j2")
    text = template.render(
        run=report.run,
        page=about,
        charts=Markup(as_script({chart.id: chart.drawn for chart in about.charts})),  # noqa: S704
        sessions=sessions,
        library=library,
        script=script,
        style=style,
        policy=_policy(script, library, style),
    )
    return text.encode()


def _policy(script: Inline, library: Inline, style: Inline) -> Markup:
    parts = (
        "default-src 'none'",
        f"script-src {library.source} {script.source}",
        f"style-src {style.source}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        # Where a browser knows them: no text can become markup, not even by a mistake of ours.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    return Markup("; ".join(parts))  # noqa: S704  # words and hashes of ours


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": one_line,
        "money": figures.money,
        "tokens": figures.tokens,
        "duration": figures.duration,
        "share": figures.share,
        "size": figures.size,
    }
    return environment


def _cleaned(value: object) -> object:
    """Every text on its way into the page, but the files of the package."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _file(name: str) -> str:
    return files("harness_batch_reports").joinpath("page", *name.split("/")).read_text("utf-8")
