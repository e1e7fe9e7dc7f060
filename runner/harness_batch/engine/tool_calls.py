"""One tool call from the model's words to its result: checked, judged, run, shortened, recorded.

Order: step and call limits, doom loop, lookup, JSON, schema, permission, execution, truncation.
Nothing is run that the rules did not allow; each verdict is an event before the tool starts.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property

import trio
from attrs import define, evolve, field, frozen

from harness_batch.engine.arguments import Schemas, parsed
from harness_batch.engine.doom_loop import Call, Window
from harness_batch.engine.log import AttemptLog, timestamp
from harness_batch.engine.spend import Spend
from harness_batch.engine.transcript import INTERRUPTED, Draft
from harness_batch.engine.turns import Rejected
from harness_batch.errors import cause_of
from harness_batch.events import PermissionDecided, ToolCallFinished, ToolCallStarted
from harness_batch.ids import new_id
from harness_batch.messages import (
    Completed,
    Failed,
    JsonObject,
    Part,
    PartBody,
    Running,
    ToolState,
    ToolUse,
)
from harness_batch.models.protocol import ToolCall, ToolSpec
from harness_batch.permissions.judge import Allowed, Denied, Policy, Ruling
from harness_batch.records import PermissionDecision, ToolStatus
from harness_batch.records import ToolCall as ToolCallRecord
from harness_batch.rules import Ask
from harness_batch.tools.protocol import Tool, ToolContext, ToolResult
from harness_batch.tools.truncation import shorten

FINAL_OUTPUT = "final_output"
STRONGER_HINT = (
    " This same call was denied before. Nobody will answer or change the rules during this"
    " session: do not repeat it; work with what is allowed, or say in your answer what you lack."
)


@frozen
class Refused:
    """The call did not run; `error` is what the model reads."""

    error: str
    status: ToolStatus = "error"


@frozen
class Taken:
    """A call that is being dealt with. `began` is on trio's clock."""

    record: ToolCallRecord
    call: ToolCall
    part: Part
    draft: Draft
    began: float

    def use(self, name: str, state: ToolState) -> ToolUse:
        """The call as it stands in the transcript."""
        return ToolUse(call_id=self.call.call_id, name=name, state=state, sealed=self.call.sealed)


@define
class ToolRunner:
    """Runs the calls of one attempt, one at a time."""

    log: AttemptLog
    tools: Mapping[str, Tool]
    policy: Policy
    context: ToolContext
    spend: Spend
    hidden: frozenset[str] = frozenset()
    """Tools that no rule can allow: not declared, and a call is a denial like any other."""
    window: Window = field(factory=Window)
    denials: int = 0
    over_limit: bool = False
    doom_loop: str | None = None
    final_output: str | None = None
    rejected: Rejected | None = None
    """The newest call of `final_output` that did not fit the schema."""
    corrections: int = 0
    used: set[str] = field(factory=set)
    """Names of tools that really ran."""
    _draft: Draft | None = None
    """The reply whose call is being dealt with."""
    _denied: set[Call] = field(factory=set)
    _schemas: Schemas = field(factory=Schemas)

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that the model is shown, sorted by name."""
        return tuple(
            ToolSpec(name=name, description=tool.description, parameters=tool.parameters)
            for name, tool in sorted(self.tools.items())
            if name not in self.hidden
        )

    def carry_on(self, before: "ToolRunner") -> None:
        """Go on where `before` ended, in the same conversation."""
        self.used |= before.used
        self._denied |= before._denied  # noqa: SLF001  # the same record, one attempt earlier

    async def answer(self, call: ToolCall, part: Part, draft: Draft, *, tools_off: bool) -> None:
        """Deal with one call; its part ends completed or failed, its row with a status."""
        arguments = parsed(call.arguments)
        record = ToolCallRecord(
            tool_call_id=new_id("tcl"),
            session_id=self.log.session_id,
            attempt_id=self.log.attempt_id,
            message_id=part.message_id,
            tool=self._repaired(call.name),
            input=arguments if isinstance(arguments, dict) else {},
            started_at=timestamp(),
        )
        taken = Taken(record, call, part, draft, trio.current_time())
        self._draft = draft
        self.log.emit(ToolCallStarted(record))
        try:
            outcome = await self._outcome(taken, arguments, tools_off=tools_off)
        except BaseException as error:
            # The draft marks the part; here the row gets its end, so that nothing stays open. A
            # cancellation may come in a group, from the nursery of whoever ran the tool.
            self._finish(taken, _cut_short(cause_of(error)))
            raise
        self._close(taken, outcome)

    def note(self, body: PartBody) -> None:
        """Add a part to the reply whose call is being dealt with."""
        assert self._draft is not None, "only a call that is being dealt with notes something"
        self._draft.add(body)

    async def _outcome(
        self, taken: Taken, arguments: JsonObject | str, *, tools_off: bool
    ) -> ToolResult | Refused:
        name = taken.record.tool
        checked = self._checked(taken, arguments, tools_off=tools_off)
        if isinstance(checked, Refused):
            if name == FINAL_OUTPUT and self.final_output is None:
                self.rejected = Rejected(taken.call.arguments, checked.error)
                self.corrections += 1
            return checked
        tool, valid = checked
        fingerprint = Call.of(name, valid)
        verdict = self._stuck(fingerprint, taken) or self._judged(tool, valid, taken, fingerprint)
        if verdict is not None:
            return verdict
        self.used.add(name)
        taken.draft.change(
            taken.part,
            taken.use(name, Running(input=valid)),
        )
        result = await tool.run(valid, self.context, taken.call.call_id)
        size = len(result.output.encode("utf-8", "replace"))
        kept = self.context
        output = shorten(result, kept.outputs, taken.call.call_id, kept.secrets)
        self.window.add(fingerprint, output)
        if name == FINAL_OUTPUT and result.status == "completed":
            # A schema that is not of an object is wrapped for the wire; the answer is not.
            answer = result.metadata.get("final_output", valid)
            self.final_output = json.dumps(answer, ensure_ascii=False)
        return evolve(result, output=output, metadata={"output_bytes": size} | result.metadata)

    def _checked(
        self, taken: Taken, arguments: JsonObject | str, *, tools_off: bool
    ) -> tuple[Tool, JsonObject] | Refused:
        name = taken.record.tool
        tool = self.tools.get(name)
        if name == FINAL_OUTPUT and tool is not None:
            # The answer is no work: neither the limit of tool calls nor the last step forbids it.
            if self.final_output is not None:
                return Refused("the final answer was taken already")
        elif refused := self._forbidden(tools_off=tools_off):
            return refused
        if tool is None:
            names = ", ".join(spec.name for spec in self.specs)
            return Refused(f"there is no tool {name!r}; the tools are: {names}")
        if isinstance(arguments, str):
            fault = f"the arguments are not a JSON object: {arguments}"
        elif not (fault := self._schemas.faults(tool, arguments)):
            return tool, arguments
        return self._hidden(tool, taken) or Refused(fault)

    def _forbidden(self, *, tools_off: bool) -> Refused | None:
        """What limits say to one more call."""
        if tools_off:
            return Refused("tools are off in the last step; answer now", "denied")
        limit = self.spend.take_tool_call()
        if limit is not None:
            self.over_limit = True
            return Refused(f"the limit of {limit} tool calls is used up", "denied")
        return None

    def _stuck(self, call: Call, taken: Taken) -> Refused | None:
        if not self.window.stuck(call):
            return None
        verdict = self.policy.judge([Ask("doom_loop", call.tool)])
        self._decided(taken.record, verdict.rulings)
        if isinstance(verdict, Allowed):
            self.window.reset()
            return None
        self.doom_loop = f"the same call of {call.tool} is repeated without effect"
        return Refused(f"{self.doom_loop}; the session ends", "denied")

    def _judged(
        self, tool: Tool, arguments: JsonObject, taken: Taken, call: Call
    ) -> Refused | None:
        asks = tool.asks(arguments, self.context)
        if isinstance(asks, ToolResult):
            status: ToolStatus = "timeout" if asks.status == "timeout" else "error"
            return self._hidden(tool, taken) or Refused(asks.output, status)
        if not tool.permission and not asks:
            return None  # it needs none: giving the answer, for one
        return self._by_rules(asks, taken, call)

    def _hidden(self, tool: Tool, taken: Taken) -> Refused | None:
        """A tool that was not offered is denied by the rules, whatever else is wrong."""
        if tool.name not in self.hidden:
            return None
        call = Call(tool.name, taken.call.arguments)
        return self._by_rules([Ask(tool.permission, "*")], taken, call)

    def _by_rules(self, asks: Sequence[Ask], taken: Taken, call: Call) -> Refused | None:
        verdict = self.policy.judge(asks)
        self._decided(taken.record, verdict.rulings)
        return self._deny(verdict.message, call) if isinstance(verdict, Denied) else None

    def _deny(self, message: str, call: Call) -> Refused:
        self.denials += 1
        again = call in self._denied
        self._denied.add(call)
        return Refused(message + STRONGER_HINT if again else message, "denied")

    def _decided(self, record: ToolCallRecord, rulings: Sequence[Ruling]) -> None:
        for ruling in rulings:
            decision = PermissionDecision(
                tool_call_id=record.tool_call_id,
                session_id=record.session_id,
                permission=ruling.ask.permission,
                pattern=ruling.ask.pattern,
                action=ruling.action,
                rule=str(ruling.rule) if ruling.rule else None,
                source=ruling.rule.source if ruling.rule else "none",
                decided_at=timestamp(),
            )
            self.log.emit(PermissionDecided(decision))

    def _close(self, taken: Taken, outcome: ToolResult | Refused) -> None:
        ended = self._finish(taken, outcome)
        state: Completed | Failed
        match outcome:
            case ToolResult(status="completed"):
                state = Completed(
                    input=ended.input,
                    title=outcome.title,
                    output=outcome.output,
                    metadata=outcome.metadata,
                    duration_ms=round((ended.duration_s or 0) * 1000),
                    images=outcome.images,
                )
            case ToolResult(output=error) | Refused(error=error):
                state = Failed(input=ended.input, error=error)
        taken.draft.change(taken.part, taken.use(ended.tool, state))

    def _finish(self, taken: Taken, outcome: ToolResult | Refused) -> ToolCallRecord:
        duration = trio.current_time() - taken.began
        match outcome:
            case ToolResult():
                ended = evolve(
                    taken.record,
                    status=outcome.status,
                    error=None if outcome.status == "completed" else outcome.output,
                    exit_code=outcome.exit_code,
                    output_bytes=outcome.metadata.get("output_bytes"),
                    duration_s=duration,
                )
            case Refused(error=error, status=status):
                ended = evolve(taken.record, status=status, error=error, duration_s=duration)
        self.log.emit(ToolCallFinished(ended))
        return ended

    def _repaired(self, name: str) -> str:
        if name in self.tools:
            return name
        return next((known for known in self.tools if known.lower() == name.lower()), name)


def _cut_short(cause: BaseException) -> Refused:
    match cause:
        case Exception():
            return Refused(f"{type(cause).__name__}: {cause}"[:1000])
        case _:
            return Refused(INTERRUPTED, "interrupted")
