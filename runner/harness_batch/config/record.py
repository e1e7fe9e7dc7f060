"""The configuration after the door: merged, checked, frozen."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Literal

from attrs import Factory, evolve, field, frozen

from harness_batch.config.model_options import ModelOptions
from harness_batch.errors import Fault
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.rules import Rule


@frozen(kw_only=True)
class Rates:
    """US dollars per million tokens; None is unknown."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    """Into the cache of 5 minutes."""
    cache_write_1h: Decimal | None = None


@frozen(kw_only=True)
class Tier(Rates):
    """What all tokens of a request cost whose input, cache included, is longer than `above`."""

    above: int


@frozen(kw_only=True)
class Prices(Rates):
    """What a model costs, with where that is known from."""

    tiers: tuple[Tier, ...] = ()
    """By ascending `above`."""
    source: Literal["config", "catalog"] = "config"
    version: str | None = None
    """Names these very figures: another version may have others for the same model."""
    valid_from: date | None = None
    """None: always, as far as is known."""

    def of(self, input_tokens: int) -> Rates:
        """The rates of a request with so many tokens of input, cache included."""
        found: Rates = self
        for tier in self.tiers:
            if input_tokens > tier.above:
                found = tier
        return found


@frozen(kw_only=True)
class PricePeriod:
    """Prices that hold from a day on, or at certain hours of each day (UTC)."""

    prices: Prices
    since: date | None = None
    hours: tuple[time, time] | None = None
    """From the first to just before the second; the night when the second is the earlier."""

    def holds(self, moment: datetime) -> bool:
        """Whether these prices are valid at a moment that knows its time zone."""
        utc = moment.astimezone(UTC)
        if self.since is not None and utc.date() < self.since:
            return False
        if self.hours is None:
            return True
        begin, end = self.hours
        now = utc.time()
        return begin <= now < end if begin <= end else now >= begin or now < end


@frozen(kw_only=True)
class Abilities:
    """What a model takes and can do; None is unknown."""

    tools: bool | None = None
    images: bool | None = None
    reasoning: bool | None = None
    temperature: bool | None = None
    """It takes a temperature; many that reason refuse a request that has one."""


@frozen(kw_only=True)
class ModelInfo:
    """What is known of a model; None is unknown."""

    context: int | None = None
    """Tokens in and out together."""
    output: int | None = None
    """The most tokens of one reply."""
    prices: Prices | None = None
    """Where no period holds."""
    periods: tuple[PricePeriod, ...] = ()
    """Of those that hold the last one counts."""
    abilities: Abilities = Abilities()
    hour_cache: bool = False
    """Requests ask for the cache of an hour, which is dearer to write."""

    def at(self, moment: datetime) -> "ModelInfo":
        """The same with the prices of that moment, a time with its zone."""
        if not self.periods:
            return self
        prices = self.prices
        for period in self.periods:
            if period.holds(moment):
                prices = period.prices
        return evolve(self, prices=prices, periods=())


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
    query: dict[str, str] = field(factory=dict, repr=False)
    """Parameters of the URL of every request."""
    github_url: str | None = None
    """Of `copilot`: where the login is, else https://github.com."""
    github_api_url: str | None = None
    """Of `copilot`: where tokens are exchanged, else `api.` before the host of `github_url`."""
    github_client_id: str | None = None
    """Of `copilot`: the OAuth client that logs in."""
    models: dict[str, ModelInfo] = Factory(dict)
    options: ModelOptions = Factory(ModelOptions)
    model_options: dict[str, ModelOptions] = Factory(dict)
    """Of models that have their own, the provider's below them."""
    connect_timeout: float = 10.0
    first_byte_timeout: float = 120.0
    idle_timeout: float = 120.0
    """Seconds between two events of a stream."""

    def options_of(self, model: str) -> ModelOptions:
        """How that model is asked."""
        return self.model_options.get(model, self.options)


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
    """By name; the built-in ones are there unless redefined."""
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
