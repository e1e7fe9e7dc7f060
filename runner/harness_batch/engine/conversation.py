"""Builds one attempt's conversation: prompt, tools, rules and model put together."""

from pathlib import Path

from attrs import Factory, evolve, frozen

from harness_batch.agents.record import Skill, Words
from harness_batch.engine.admission import Admission, Unlimited
from harness_batch.engine.children import Children
from harness_batch.engine.compaction import SUMMARY_SYSTEM, SUMMARY_TOKENS
from harness_batch.engine.compactor import Compactor
from harness_batch.engine.family import Carryover, ChildSessions, NoChildren, Parent
from harness_batch.engine.jobs import Jobs
from harness_batch.engine.log import AttemptLog
from harness_batch.engine.loop import Loop
from harness_batch.engine.opening import opened
from harness_batch.engine.project_files import attached
from harness_batch.engine.prompt import ProjectFile, system_blocks, user_prompt
from harness_batch.engine.site import Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.step import Stepper
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.tool_calls import FINAL_OUTPUT, ToolRunner
from harness_batch.engine.transcript import Transcript
from harness_batch.models.protocol import Model, Only
from harness_batch.permissions.judge import Policy
from harness_batch.plan.item import Item
from harness_batch.rules import Ask
from harness_batch.tools.protocol import NO_SECRETS, Secrets, Tool, ToolContext


@frozen(kw_only=True)
class Agenda:
    """What an attempt is about: all that is known before there is a workspace."""

    item: Item
    model: Model
    small_model: Model
    """Writes summaries; the same as `model` where none is named."""
    tools: tuple[Tool, ...]
    policy: Policy
    notes: tuple[ProjectFile, ...]
    """What the system prompt quotes, from the commit that the session starts from."""
    date: str
    """The day the run started; the same in all prompts of a run."""
    platform: str
    outputs: Path
    """Folder for outputs that are too long for the model; exists."""
    secrets: Secrets = NO_SECRETS
    """The runner's; no output may hold one."""
    child_sessions: ChildSessions = Factory(NoChildren)
    depth: int = 0
    """0: an item's own session; more: a child."""
    carryover: Carryover = Factory(Carryover)
    """Of earlier attempts whose conversation this one goes on with."""
    fallbacks: tuple[Model, ...] = ()
    """Models in place of one that fails before anything was said, in order."""
    admission: Admission = Factory(Unlimited)
    """Shares the providers out among sessions."""


async def converse(
    agenda: Agenda,
    site: Site,
    log: AttemptLog,
    spend: Spend,
    stop: StopSignal,
    *,
    before: Loop | None = None,
) -> tuple[Loop, str]:
    """The conversation, ready to run, and the user's prompt to run it with.

    After the conversation of an attempt `before` it begins with the same bytes and the model that
    answered there: what the agent changed in the workspace does not get into its own prompt.
    Raises: StorageError.
    """
    children = _children(agenda, site, log, spend, stop)
    runner = _runner(agenda, site, log, spend, children)
    children.note = runner.note
    if before is not None:
        runner.denials = before.runner.denials
    stepper = _stepper(agenda, runner, stop, before)
    if before is not None:
        prompt = before.compactor.prompt
    else:
        prompt = await _prompt(agenda, site, runner, stepper.transcript)
    summariser = _summariser(agenda, stepper)
    loop = Loop(
        stepper=stepper,
        transcript=stepper.transcript,
        runner=runner,
        spend=spend,
        compactor=Compactor(stepper.transcript, stepper, summariser, spend, prompt),
        children=children,
        on_denial=agenda.item.recipe.on_denial,
        needs_final_output=agenda.item.recipe.response_schema is not None,
        fallbacks=list(agenda.fallbacks),
    )
    return loop, prompt


def _stepper(agenda: Agenda, runner: ToolRunner, stop: StopSignal, before: Loop | None) -> Stepper:
    name = str(agenda.model.ref)
    by_schema = agenda.item.recipe.response_schema is not None
    return Stepper(
        log=runner.log,
        model=before.stepper.model if before else agenda.model,
        system=before.stepper.system if before else _system(agenda),
        transcript=Transcript(runner.log, name, agenda.item.agent.name, agenda.carryover.turns),
        runner=runner,
        spend=runner.spend,
        stop=stop,
        temperature=_temperature(agenda.item),
        admission=agenda.admission,
        last_choice=Only(FINAL_OUTPUT) if by_schema else "none",
    )


def carry_on(loop: Loop, before: Loop) -> None:
    """Let `loop` go on with the conversation of the attempt before it, whose carryover it has."""
    loop.runner.carry_on(before.runner)
    loop.wrapped_up = before.wrapped_up


async def _prompt(agenda: Agenda, site: Site, runner: ToolRunner, transcript: Transcript) -> str:
    recipe = agenda.item.recipe
    task = await opened(agenda.item.opening or (Words(recipe.prompt),), runner, transcript)
    return user_prompt(
        task,
        context=attached(site.workspace.root, recipe.context),
        schema_wanted=recipe.response_schema is not None,
    )


def _summariser(agenda: Agenda, stepper: Stepper) -> Stepper:
    """The small model, without tools; what it says is part of the session's record."""
    model = stepper.model if agenda.small_model is agenda.model else agenda.small_model
    idle = evolve(stepper.runner, tools={})
    return Stepper(
        log=stepper.log,
        model=model,
        system=(SUMMARY_SYSTEM,),
        transcript=Transcript(stepper.log, str(model.ref), "compaction"),
        runner=idle,
        spend=stepper.spend,
        stop=stepper.stop,
        purpose="compaction",
        admission=stepper.admission,
        most_output_tokens=SUMMARY_TOKENS,
    )


def _children(
    agenda: Agenda, site: Site, log: AttemptLog, spend: Spend, stop: StopSignal
) -> Children:
    parent = Parent(
        session_id=log.session_id,
        depth=agenda.depth,
        item=agenda.item,
        policy=agenda.policy,
        site=site,
        spend=spend,
        stop=stop,
    )
    return Children(
        parent=parent,
        sessions=agenda.child_sessions,
        jobs=Jobs(log),
        known=agenda.carryover.children,
    )


def _runner(
    agenda: Agenda, site: Site, log: AttemptLog, spend: Spend, children: Children
) -> ToolRunner:
    context = ToolContext(
        root=site.workspace.root,
        cwd=site.workspace.cwd,
        launcher=site.launcher,
        outputs=agenda.outputs,
        secrets=agenda.secrets,
        may=agenda.policy.allows,
        takes_images=agenda.model.info.abilities.images is True,
        tmp=site.tmp,
        files=agenda.carryover.files,
        todos=agenda.carryover.todos,
    )
    everything = (*agenda.tools, *children.tools())
    hidden = children.hidden().union(
        tool.name
        for tool in everything
        if tool.permission and not agenda.policy.can_allow(tool.permission)
    )
    tools = {tool.name: tool for tool in everything}
    return ToolRunner(
        log=log, tools=tools, policy=agenda.policy, context=context, spend=spend, hidden=hidden
    )


def _system(agenda: Agenda) -> tuple[str, ...]:
    return system_blocks(
        platform=agenda.platform,
        date=agenda.date,
        workspace="a git work tree at a pinned commit",
        agent=agenda.item.agent.prompt,
        project=agenda.notes,
        skills=_skills(agenda),
        instructions=agenda.item.recipe.instructions,
    )


def _skills(agenda: Agenda) -> tuple[Skill, ...]:
    """Those that the rules let the model read."""
    skills = agenda.item.equipment.skills.values()
    return tuple(one for one in skills if agenda.policy.allows(Ask("skill", one.name)))


def _temperature(item: Item) -> float | None:
    recipe = item.recipe.temperature
    return recipe if recipe is not None else item.agent.temperature
