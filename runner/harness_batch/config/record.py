"""The configuration after the door: merged, checked, frozen."""

from decimal import Decimal
from pathlib import Path
from typing import Literal

from attrs import Factory, field, frozen

from harness_batch.errors import Fault
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.rules import Rule


@frozen(kw_only=True)
class Prices:
    """US dollars per million tokens; None is unknown."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    source: Literal["config", "catalog"] = "config"
    version: str | None = None


@frozen(kw_only=True)
class ModelInfo:
    """What is known of a model; None is unknown."""

    context: int | None = None
    """Tokens in and out together."""
    output: int | None = None
    """The most tokens of one reply."""
    prices: Prices | None = None


@frozen(kw_only=True)
class KeyOrigin:
    """Where a provider's key was found, and where a missing one is looked for."""

    variable: str | None = None
    """The environment variable that is looked at first."""
    place: str | None = None
    """Where the key was found, for people; None: nowhere."""
    file: Path | None = None
    """The file that it was read from and may be changed in."""
    stored: bool = False
    """That file is `auth.json`."""
    trouble: str | None = None
    """Why `auth.json` is not used, and how to mend that."""


@frozen(kw_only=True)
class ProviderSettings:
    """One provider of the configuration."""

    name: str
    type: Literal["anthropic", "openai-responses", "openai-chat", "copilot", "scripted", "replay"]
    base_url: str | None = None
    configured_base_url: bool = False
    """The base URL is the user's (file or `*_BASE_URL`): models it does not list are legal."""
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    """The environment variable that the configuration's `api_key` names."""
    key_origin: KeyOrigin = KeyOrigin()
    headers: dict[str, str] = field(factory=dict, repr=False)
    models: dict[str, ModelInfo] = Factory(dict)
    connect_timeout: float = 10.0
    first_byte_timeout: float = 120.0
    idle_timeout: float = 120.0
    """Seconds between two events of a stream."""


@frozen(kw_only=True)
class DeclaredAgent:
    """An agent of the configuration's `agents`, for the agents door; None was not said."""

    name: str
    description: str | None = None
    mode: Literal["primary", "subagent", "all"] | None = None
    model: str | None = None
    temperature: float | None = None
    steps: int | None = None
    rules: tuple[Rule, ...] = ()
    prompt: str | None = None


@frozen(kw_only=True)
class Config:
    """All sources merged. Only the user's own files can set what the repository's may not."""

    providers: dict[str, ProviderSettings] = Factory(dict)
    """By name; `anthropic`, `openai` and `scripted` are there unless redefined."""
    model: str | None = None
    small_model: str | None = None
    grants: dict[str, tuple[str, ...]] | None = None
    """Agent, role or recipe -> models it may use; None grants every model."""
    rules: tuple[Rule, ...] = ()
    limits: Limits = Factory(Limits)
    ceiling: Limits = Factory(Limits)
    """Of untrusted files: applied after the defaults, so that they can only lower a limit."""
    agents: tuple[DeclaredAgent, ...] = ()
    instructions: tuple[str, ...] = ()
    """Extra instruction files (globs) for the system prompt."""
    run: JsonObject = Factory(dict)
    """Defaults of `run` options, by option name with underscores."""
    files: tuple[Path, ...] = ()
    """The files that were read, in order."""
    warnings: tuple[Fault, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Every secret value that is known (keys, secret headers), for masking; longest first."""
