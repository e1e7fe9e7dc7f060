"""Who answers an item: agent and models, the first of all who say it, and whether they may."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import evolve, frozen

from harness_batch.agents.record import Agent, Command
from harness_batch.config.record import Config, Prices
from harness_batch.errors import UsageError
from harness_batch.limits import Limits
from harness_batch.messages import ModelRef
from harness_batch.plan.inputs import Overrides
from harness_batch.plan.known_models import CONFIGURED, KnownModels
from harness_batch.recipe.record import Recipe
from harness_batch.words import nearest

DEFAULT_AGENT = "build"
FREE = ("scripted", "replay")
"""Provider types whose calls cost nothing."""


@frozen
class Wrong:
    """Why an item cannot be planned. `key` is the recipe's key that a mend would touch."""

    message: str
    key: str


@frozen(kw_only=True)
class Chooser:
    """Configuration, agents and command line, asked for one recipe after the other."""

    config: Config
    agents: Mapping[str, Agent]
    cli: Overrides
    known: KnownModels = CONFIGURED

    def agent(self, recipe: Recipe, command: Command | None = None) -> Agent | Wrong:
        """The command line's, else the recipe's, else that of the command that it calls."""
        name = self.cli.agent or recipe.agent or (command and command.agent) or DEFAULT_AGENT
        agent = self.agents.get(name)
        if agent is None:
            known = ", ".join(sorted(self.agents))
            told = f"unknown agent `{name}`{nearest(name, self.agents)} (known: {known})"
            return Wrong(told, "agent")
        if agent.mode == "subagent":
            return Wrong(f"agent {name!r} is a subagent: it cannot lead a session", "agent")
        return agent

    def models(
        self, recipe: Recipe, agent: Agent, command: Command | None = None
    ) -> tuple[ModelRef, ...] | Wrong:
        """The model and its fallbacks: command line, recipe, command, agent, configuration."""
        words, origin = self._words(recipe, agent, command)
        if not words:
            told = (
                "no model: say -m PROVIDER/MODEL, or `model:` in the recipe or the configuration "
                f"(providers: {self._known()})"
            )
            return Wrong(told, "name")
        refs = []
        for text in words:
            ref = self.ref(text, recipe)
            if isinstance(ref, Wrong):
                return evolve(ref, message=ref.message + origin)
            refs.append(ref)
        return tuple(refs)

    def _words(
        self, recipe: Recipe, agent: Agent, command: Command | None
    ) -> tuple[tuple[str, ...], str]:
        if self.cli.model:
            return (self.cli.model,), " (from -m)"
        if recipe.models:
            return recipe.models, ""
        if command is not None and command.model:
            return (command.model,), f" (from the command /{command.name})"
        if agent.model:
            return (agent.model,), f" (from agent {agent.name!r})"
        return ((self.config.model,) if self.config.model else ()), " (from the configuration)"

    def ref(self, text: str, recipe: Recipe) -> ModelRef | Wrong:
        """One model's name; that of a file is made absolute from the recipe's folder."""
        try:
            ref = ModelRef.parse(text)
        except ValueError:
            return Wrong(f"model `{text}` must be PROVIDER/MODEL{self._whose(text)}", "model")
        provider = self.config.providers.get(ref.provider)
        if provider is None:
            close = nearest(ref.provider, self.config.providers)
            told = f"unknown provider `{ref.provider}` of model `{text}`{close}"
            return Wrong(f"{told} (configured: {self._known()})", "model")
        if provider.type in FREE:
            file = Path(recipe.file.parent, ref.model)
            if not file.is_file():
                return Wrong(f"model `{text}`: there is no file {file}", "model")
            return ModelRef(ref.provider, str(file.resolve()))
        if not self.known.has(provider, ref.model):
            names = self.known.names(provider)
            close = nearest(ref.model, names)
            told = f"unknown model `{ref.model}` of provider `{ref.provider}`{close}"
            listed = ", ".join(provider.models) or "none; `harness-batch models` shows the catalog"
            return Wrong(f"{told} (listed: {listed})", "model")
        return ref

    def _whose(self, name: str) -> str:
        """For a model without its provider: the first one that lists it."""
        for word, provider in sorted(self.config.providers.items()):
            if provider.type not in FREE and name in self.known.names(provider):
                return f"; did you mean `{word}/{name}`?"
        return ""

    def _known(self) -> str:
        return ", ".join(sorted(self.config.providers))

    def small_model(self, recipe: Recipe) -> ModelRef | Wrong | None:
        """For summaries."""
        text = recipe.small_model or self.config.small_model
        return self.ref(text, recipe) if text else None

    def limits(self, recipe: Recipe, agent: Agent) -> Limits:
        """Of all who declare a limit the lowest wins; defaults where nobody does."""
        declared = self.config.limits.lowest(Limits(steps=agent.steps))
        chosen = declared.lowest(recipe.limits).lowest(self.cli.limits).with_defaults()
        return chosen.lowest(self.config.ceiling)

    def unpriced(
        self, models: tuple[ModelRef, ...], recipe: Recipe, limits: Limits
    ) -> Wrong | None:
        """A cost that is bounded must be known."""
        if limits.cost_usd is not None:
            what, key = "limits.cost_usd", "limits"
        elif recipe.expect.max_cost_usd is not None:
            what, key = "expect.max_cost_usd", "expect"
        else:
            return None
        for ref in models:
            if not self.is_priced(ref):
                return Wrong(wants_prices(what, ref), key)
        return None

    def is_priced(self, ref: ModelRef) -> bool:
        """Whether it is known what the model's input and output cost, at any time."""
        provider = self.config.providers[ref.provider]
        if provider.type in FREE:
            return True
        info = self.known.info(provider, ref.model)
        times = (info.prices, *(period.prices for period in info.periods))
        return all(map(_covers_all, times))

    def refusal(self, models: tuple[ModelRef, ...], agent: Agent, recipe: Recipe) -> str | None:
        """Which model is not granted to agent or recipe; None when all are."""
        grants = self.config.grants
        if grants is None:
            return None
        granted = [
            glob
            for name, globs in grants.items()
            if any(fnmatchcase(who, name) for who in (agent.name, recipe.name))
            for glob in globs
        ]
        for ref in models:
            if not any(_grants(glob, ref) for glob in granted):
                who = f"agent {agent.name!r} and recipe {recipe.name!r}"
                return f"model {ref} is not granted to {who} (`grants` of the configuration)"
        return None


def wants_prices(what: str, ref: ModelRef) -> str:
    """Words for a limit of cost on a model without prices."""
    told = f"{what} needs the prices of {ref}: set provider.{ref.provider}.models"
    return f"{told}.{ref.model!r}.cost with input and output"


def _covers_all(prices: Prices | None) -> bool:
    return prices is not None and prices.input is not None and prices.output is not None


def _grants(glob: str, ref: ModelRef) -> bool:
    return glob == str(ref) or fnmatchcase(str(ref), glob)


def check_overrides(chooser: Chooser) -> None:
    """Raises: UsageError for a command line that fits no recipe at all."""
    cli = chooser.cli
    for wrong in _wrong_options(chooser, cli):
        raise UsageError(wrong)


def _wrong_options(chooser: Chooser, cli: Overrides) -> Iterator[str]:
    nobody = Recipe(file=Path("/"), name="", agent=cli.agent)
    if cli.agent and isinstance(found := chooser.agent(nobody), Wrong):
        yield f"--agent: {found.message}"
    provider = (cli.model or "").partition("/")[0]
    known = chooser.config.providers.get(provider)
    if cli.model and (known is None or known.type not in FREE):
        ref = chooser.ref(cli.model, nobody)
        if isinstance(ref, Wrong):
            yield f"-m: {ref.message}"
