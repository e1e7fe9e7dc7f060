"""A recipe after the door: rendered for one item, frozen, with no question left open."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol

from attrs import Factory, field, frozen

from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.rules import Rule

InputType = Literal["string", "number", "boolean", "date", "file", "select"]
Requirement = Literal["required", "optional", "user_prompt"]


@frozen(kw_only=True)
class Parameter:
    """A declared parameter; `user_prompt` without a default counts as required."""

    key: str
    input_type: InputType = "string"
    requirement: Requirement = "required"
    description: str = ""
    default: Any = None
    options: tuple[str, ...] = ()


@frozen(kw_only=True)
class SandboxWish:
    """What the recipe wants of the sandbox."""

    network: Literal["none", "all"] | tuple[str, ...] = "none"
    write: tuple[str, ...] = ()
    need: tuple[str, ...] = ()
    external: bool = False


@frozen(kw_only=True)
class WorkspaceWish:
    """Where the session works."""

    repo: str = "."
    ref: str = "HEAD"
    path: str = "."
    mode: Literal["worktree", "in-place"] = "worktree"
    setup: tuple[str, ...] = ()
    setup_network: Literal["none", "all"] = "all"
    submodules: bool = False


@frozen(kw_only=True)
class Check:
    """A shell command that decides passed or failed."""

    name: str
    run: str
    timeout: float = 600.0


@frozen(kw_only=True)
class RetryRule:
    """When an attempt is followed by another one, and from where that one starts."""

    max_retries: int
    """Attempts after the first."""
    checks: tuple[str, ...] = ()
    """Shell commands that must succeed."""
    on_failure: str = ""
    """Shell command that runs before another attempt; empty: none."""
    timeout_seconds: float = 300.0
    """Of each check; goose's default."""
    on_failure_timeout_seconds: float = 600.0
    """Goose's default."""
    feedback: bool = False
    """The conversation goes on with what failed; else it begins again."""
    reset: bool = False
    """The workspace is put back to its base before another attempt."""


@frozen(kw_only=True)
class Expectations:
    """What must hold of the result; None is no expectation."""

    patch: Literal["required", "optional", "none"] | None = None
    answer: Literal["nonempty"] | None = None
    max_files: int | None = None
    max_cost_usd: Decimal | None = None
    tools_used: tuple[str, ...] = ()
    tools_unused: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    """Every changed path must match one of these globs, and at least one path must have changed."""


PROTECTED = (
    # CI systems, and actions that others call
    ".github/**",
    ".gitlab/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".buildkite/**",
    ".woodpecker/**",
    ".woodpecker.y*ml",
    ".travis.yml",
    "azure-pipelines*.y*ml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile*",
    "action.y*ml",
    # who reviews, what git does with the files, what runs when people commit
    "CODEOWNERS",
    ".gitmodules",
    ".gitattributes",
    ".husky/**",
    ".githooks/**",
    ".pre-commit-config.yaml",
    ".envrc",
    # what agents are told
    ".harness/**",
    "harness.jsonc",
    "AGENTS.md",
    "**/AGENTS.md",
    "CLAUDE.md",
    "**/CLAUDE.md",
    "GEMINI.md",
    ".claude/**",
    ".gemini/**",
    ".cursor/**",
    ".cursorrules",
    ".mcp.json",
    "opencode.json",
    # which code of others is installed
    "*.lock",
    "*.lockb",
    "*.lockfile",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "packages.lock.json",
    "go.sum",
)
"""Paths that a patch may not touch unless the recipe declares `patch.protect` itself."""


@frozen(kw_only=True)
class PatchRules:
    """What a patch may touch; globs are pathspec (gitignore) patterns."""

    allow: tuple[str, ...] = ()
    """Empty: everything that is not protected."""
    protect: tuple[str, ...] = PROTECTED
    max_files: int = 100
    max_bytes: int = 4_194_304
    message: str | None = None


@frozen(kw_only=True)
class Extension:
    """A goose extension that this version serves with its own tools."""

    type: Literal["builtin"]
    name: Literal["developer", "todo"]


class RecipeTemplate(Protocol):
    """A checked recipe file whose templates are not rendered yet."""

    @property
    def file(self) -> Path:
        """Where it stands."""
        ...

    @property
    def name(self) -> str:
        """The recipe's."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The declarations."""
        ...

    @property
    def content(self) -> str:
        """Hash of the file and of all recipes that it uses."""
        ...

    def values(self, given: Mapping[str, object]) -> JsonObject:
        """Every parameter's value. Raises: FaultyInput."""
        ...

    def rendered(self, variables: Mapping[str, object]) -> "Recipe":
        """The recipe for these values. Raises: FaultyInput."""
        ...


@frozen(kw_only=True)
class SubRecipe:
    """A recipe that the agent may run, as a tool."""

    name: str
    """Of the tool, and for `task` rules."""
    description: str
    """For the model."""
    values: JsonObject
    """Parameters that are fixed."""
    parameters: JsonObject
    """JSON Schema of the others."""
    content: str
    """See `RecipeTemplate.content`."""
    source: RecipeTemplate = field(eq=False, repr=False)


@frozen(kw_only=True)
class Recipe:
    """One item's recipe, templates rendered."""

    file: Path
    name: str
    title: str = ""
    description: str = ""
    instructions: str = ""
    """Goes into the system prompt."""
    prompt: str = ""
    """The user's message."""
    command: str | None = None
    """The prompt is `/command arguments`, and the file itself says so: no value can."""
    models: tuple[str, ...] = ()
    """`PROVIDER/MODEL`, fallbacks in order; empty: the configuration's. A relative
    `scripted/FILE` is made absolute from the recipe's folder."""
    small_model: str | None = None
    agent: str | None = None
    """None: the command's, else build."""
    temperature: float | None = None
    permissions: tuple[Rule, ...] = ()
    on_denial: Literal["continue", "fail"] | int = "continue"
    sandbox: SandboxWish = Factory(SandboxWish)
    env: tuple[str, ...] = ()
    """Names or globs of environment variables that tools see."""
    workspace: WorkspaceWish = Factory(WorkspaceWish)
    limits: Limits = Factory(Limits)
    context: tuple[str, ...] = ()
    """Globs of workspace files attached to the prompt."""
    checks: tuple[Check, ...] = ()
    expect: Expectations = Factory(Expectations)
    patch: PatchRules = Factory(PatchRules)
    response_schema: JsonObject | None = None
    retry: RetryRule | None = None
    extensions: tuple[Extension, ...] = ()
    sub_recipes: tuple[SubRecipe, ...] = ()
