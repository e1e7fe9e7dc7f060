"""`harness-batch report`: the reports of a run, made again from its records."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness_batch.errors import UsageError

if TYPE_CHECKING:
    from harness_batch.store.folder import RunFolder
    from harness_batch_reports.records import BatchReport

FORMATS = ("junit", "markdown", "html", "json", "sarif", "github", "text")


@click.command()
@click.argument("run", default="last")
@click.option(
    "--format",
    "formats",
    default="text",
    show_default=True,
    metavar="NAME,...",
    help=f"Of {', '.join(FORMATS)}; one goes to stdout, several into the run's folder.",
)
@click.option(
    "--junit-dialect",
    "dialect",
    default="plain",
    show_default=True,
    type=click.Choice(["plain", "surefire", "gitlab", "azure", "jenkins"]),
    help="What the CI system reads.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the files there instead of stdout.",
)
def command(run: str, formats: str, dialect: str, out: Path | None) -> None:
    """Report RUN again: an id, a folder, or `last`."""
    from harness_batch.app.finish import ensured, reported
    from harness_batch.app.places import harness_of
    from harness_batch.store.disk import write_copy
    from harness_batch.store.runs import find_run

    names = [name for name in formats.split(",") if name]
    if not names:
        raise UsageError(f"--format: names no format; there are {', '.join(FORMATS)}")
    for name in names:
        if name not in FORMATS:
            raise UsageError(f"--format {name}: unknown; there are {', '.join(FORMATS)}")
    folder = ensured(find_run(run, harness_of(Path.cwd())))
    report = reported(folder)
    texts = {name: _text(name, folder, report, dialect) for name in names}
    if out is None and len(texts) == 1:
        click.echo(next(iter(texts.values())), nl=False)
        return
    target = out or folder.path
    for name, text in texts.items():
        path = target / _FILES[name]
        write_copy(path, text.encode() if isinstance(text, str) else text)
        click.echo(str(path))


_FILES = {
    "junit": "junit.xml",
    "markdown": "summary.md",
    "html": "report.html",
    "sarif": "report.sarif",
    "json": "result.json",
    "github": "annotations.txt",
    "text": "summary.txt",
}


def _text(name: str, folder: "RunFolder", report: "BatchReport", dialect: str) -> str | bytes:
    from harness_batch.app.finish import html_of
    from harness_batch_reports import console, github, junit, markdown, result_json, sarif

    made: str | bytes
    match name:
        case "junit":
            made = junit.render(report, dialect, Path.cwd())
        case "markdown":
            made = markdown.summary(report)
        case "html":
            made = html_of(folder, report)
        case "sarif":
            made = sarif.render(report)
        case "json":
            made = result_json.as_text(result_json.result(report))
        case "github":
            made = github.annotations(report, Path.cwd())
        case _:
            made = console.screen(report)
    return made
