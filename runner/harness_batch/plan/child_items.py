"""What a child session is about: derived from its parent's item when a tool call asks for it. Pure.

A child works in its parent's workspace. Its rules are the stack with its own agent in the parent
agent's place; that it may do no more than its parent is not decided here. It uses the model that
its sub-recipe or agent names, else its parent's, and no limit of it is wider than its parent's.
"""

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from harness_batch.agents.record import Agent
from harness_batch.errors import FaultyInput
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.plan.choice import DEFAULT_AGENT, Chooser, Wrong
from harness_batch.plan.item import Item
from harness_batch.plan.opening import call_of
from harness_batch.recipe.record import Expectations, Recipe, SubRecipe
from harness_batch.rules import Rule

NOT_GRANTED = "grants"
"""`key` of a Wrong about a model that is not granted."""


@frozen(kw_only=True)
class ChildItems:
    """Makes the items of children."""

    chooser: Chooser

    def agents(self, parent: Item) -> Mapping[str, str]:
        """Every agent that can be a child of the item's session, with its description."""
        agents = parent.equipment.agents.values()
        return {agent.name: agent.description for agent in agents if agent.mode != "primary"}

    def of_agent(self, parent: Item, name: str, prompt: str) -> Item | Wrong:
        """A child that does what a prompt says; of the recipe only the frame is kept."""
        agent = parent.equipment.agents[name]
        recipe = evolve(
            parent.recipe,
            prompt=prompt,
            instructions="",
            command=None,
            agent=name,
            models=(),
            small_model=None,
            temperature=None,
            limits=Limits(),
            context=(),
            checks=(),
            expect=Expectations(),
            response_schema=None,
            retry=None,
            sub_recipes=(),
        )
        own = tuple(rule for rule in parent.rules if rule.source.startswith("recipe:"))
        return self._item(parent, recipe, agent, own)

    def of_recipe(self, parent: Item, sub: SubRecipe, arguments: JsonObject) -> Item | Wrong:
        """A run of a sub-recipe with these arguments."""
        try:
            params = sub.source.values({**arguments, **sub.values})
            recipe = sub.source.rendered(params)
        except FaultyInput as error:
            return Wrong("; ".join(fault.message for fault in error.faults), "sub_recipes")
        call = call_of(recipe, parent.equipment)
        if isinstance(call, Wrong):
            return Wrong(call.message, "sub_recipes")
        name = recipe.agent or (call.command and call.command.agent) or DEFAULT_AGENT
        agent = parent.equipment.agents.get(name)
        if agent is None:
            return Wrong(f"unknown agent `{name}`", "agent")
        framed = evolve(
            recipe,
            expect=evolve(recipe.expect, patch=None, max_files=None, touches=()),
            env=parent.recipe.env,
            sandbox=parent.recipe.sandbox,
            patch=parent.recipe.patch,
            workspace=parent.recipe.workspace,
            # Putting the workspace back would throw the parent's own work away.
            retry=recipe.retry and evolve(recipe.retry, reset=False),
        )
        if call.command and call.command.model and not framed.models:
            framed = evolve(framed, models=(call.command.model,))
        item = self._item(parent, framed, agent, recipe.permissions)
        return item if isinstance(item, Wrong) else evolve(item, params=params, opening=call.parts)

    def _item(
        self, parent: Item, recipe: Recipe, agent: Agent, own: Iterable[Rule]
    ) -> Item | Wrong:
        models = self._models(parent, recipe, agent)
        if isinstance(models, Wrong):
            return models
        small = self.chooser.small_model(recipe) if recipe.small_model else parent.small_model
        if isinstance(small, Wrong):
            return small
        used = (*models, *((small,) if small else ()))
        limits = parent.limits.lowest(Limits(steps=agent.steps)).lowest(recipe.limits)
        wrong = self.chooser.unpriced(used, recipe, limits)
        refusal = self.chooser.refusal(used, agent, recipe)
        if wrong is not None or refusal is not None:
            return wrong or Wrong(str(refusal), NOT_GRANTED)
        # Setting up was the parent's business.
        workspace = evolve(recipe.workspace, setup=())
        return evolve(
            parent,
            recipe=evolve(recipe, workspace=workspace),
            params={},
            matrix={},
            opening=(),
            agent=agent,
            models=models,
            small_model=small,
            rules=_stack(parent.rules, agent.granted, own),
            limits=limits,
        )

    def _models(self, parent: Item, recipe: Recipe, agent: Agent) -> tuple[ModelRef, ...] | Wrong:
        words = recipe.models or ((agent.model,) if agent.model else ())
        if not words:
            return parent.models
        refs: list[ModelRef] = []
        for text in words:
            ref = self.chooser.ref(text, recipe)
            if isinstance(ref, Wrong):
                return evolve(ref, message=f"agent {agent.name!r}: {ref.message}")
            refs.append(ref)
        return tuple(refs)


def _stack(above: Iterable[Rule], agent: Iterable[Rule], own: Iterable[Rule]) -> tuple[Rule, ...]:
    """Defaults and configuration, agent, recipe, command line: the order of every stack."""
    rules = tuple(above)
    base = (rule for rule in rules if rule.source.partition(":")[0] in ("default", "config"))
    last = (rule for rule in rules if rule.source == "cli")
    return (*base, *agent, *own, *last)
