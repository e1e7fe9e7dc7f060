"""Where the paths of a report start: CI systems want them relative to the checkout."""

from pathlib import Path, PurePath

from attrs import frozen

from harness_batch_reports.hostile import one_line, unattached
from harness_batch_reports.records import BatchReport


@frozen
class Places:
    """The run's folder and the checkout, both absolute; None when not known."""

    run: Path | None
    project: Path | None

    @classmethod
    def of(cls, report: BatchReport, project: Path | None) -> "Places":
        """The given project, else the folder that holds `.harness`, else the run's own."""
        run = report.folder
        if project is None and run is not None:
            above = [folder.parent for folder in run.parents if folder.name == ".harness"]
            project = above[0] if above else run
        return cls(run, project)

    def in_project(self, path: str) -> str:
        """The path relative to the project when it lies in it, `/` between."""
        if self.project is not None and PurePath(path).is_relative_to(self.project):
            path = PurePath(path).relative_to(self.project).as_posix()
        return unattached(one_line(path, 1_024))
