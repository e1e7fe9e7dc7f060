"""What the command line says, as records. Nothing here is heavy to import."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal

from attrs import Factory, frozen

from harness_batch.limits import Limits

SandboxMode = Literal["auto", "required", "off"]
Dialect = Literal["plain", "surefire", "gitlab", "azure", "jenkins"]


@frozen(kw_only=True)
class ConfigSources:
    """Which configuration files are read, and whether a repository's count like the user's."""

    cwd: Path
    environ: Mapping[str, str]
    explicit: Path | None
    trust_repo: bool
    repo_config: bool


@frozen(kw_only=True)
class Inputs:
    """Which recipes on which repositories: what `run`, `validate` and `plan` share."""

    recipes: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    parameters: Mapping[str, str] = Factory(dict)
    """`-p KEY=VALUE`."""
    parameter_files: tuple[Path, ...] = ()
    """`--params FILE`: YAML or JSON objects; later files and `-p` win."""
    model: str | None = None
    agent: str | None = None
    limits: Limits = Factory(Limits)
    repos: tuple[str, ...] = ()
    """Paths, URLs, or `@FILE` with one a line; empty: what each recipe names."""
    ref: str | None = None
    rules: tuple[tuple[str, str], ...] = ()
    """`--allow` and `--deny` in the order they were given."""
    only: tuple[str, ...] = ()
    db: Path | None = None
    """The history that a matrix may ask, when it is not the usual one."""
    config: Path | None = None
    trust_repo: bool = False
    repo_config: bool = True

    @property
    def config_sources(self) -> ConfigSources:
        """Where the configuration comes from."""
        return ConfigSources(
            cwd=self.cwd,
            environ=self.environ,
            explicit=self.config,
            trust_repo=self.trust_repo,
            repo_config=self.repo_config,
        )


@frozen(kw_only=True)
class RunOptions:
    """How a run goes and what it leaves."""

    jobs: int = 4
    out: Path | None = None
    db: Path | None = None
    junit: Path | None = None
    dialect: Dialect = "plain"
    summary: Path | None = None
    html: Path | None = None
    sarif: Path | None = None
    events: Path | None = None
    max_cost: Decimal | None = None
    max_seconds: float | None = None
    max_failures: int | None = None
    sandbox: SandboxMode = "auto"
    keep_worktrees: bool = False
    shard: str | None = None
    """`I/N` or `auto`: the part of the plan that is ours."""
    resume: str | None = None
    """A run's id or folder, or `last`."""
    rerun: Literal["failed", "errored"] | None = None
    argv: tuple[str, ...] = ()
