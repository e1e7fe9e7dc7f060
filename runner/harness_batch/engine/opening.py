"""The user's message of a session that a command opens: its files and shell output filled in.

Both are tool calls like the model's own, made before it is asked for the first time: judged by the
session's rules, recorded with their decisions, counted. They stand in a message of their own, which
the model is not shown; what they gave stands in the prompt, a denial in its words.
"""

import json
from collections.abc import Sequence

from attrs import Factory, define

from harness_batch.agents.record import Attached, OpeningPart, Printed, Words
from harness_batch.engine.prompt import quoted
from harness_batch.engine.tool_calls import ToolRunner
from harness_batch.engine.transcript import Draft, Transcript
from harness_batch.messages import Completed, Failed, JsonObject, Pending, ToolUse
from harness_batch.models.protocol import ToolCall
from harness_batch.tools.paths import Refused, locate


async def opened(parts: Sequence[OpeningPart], runner: ToolRunner, transcript: Transcript) -> str:
    """The prompt: shell output where it was called for, files after the text.

    Raises: StorageError.
    """
    if all(isinstance(part, Words) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Words))
    filling = _Filling(runner, transcript.aside())
    try:
        for part in parts:
            await filling.take(part)
    except BaseException:
        filling.draft.interrupt()
        raise
    filling.draft.finish(None)
    return "\n\n".join(("".join(filling.text), *filling.files))


@define
class _Filling:
    """The message being filled in."""

    runner: ToolRunner
    draft: Draft
    text: list[str] = Factory(list)
    files: list[str] = Factory(list)

    async def take(self, part: OpeningPart) -> None:
        """One more part."""
        match part:
            case Words(text=text):
                self.text.append(text)
            case Printed(script=script):
                said = await self._call("bash", {"command": script})
                self.text.append(quoted(said, "output", command=script))
            case Attached(path=path, written=written):
                self.text.append(written)
                if self._exists(path):
                    said = await self._call("read", {"file_path": path})
                    self.files.append(quoted(said, "file", path=path))

    def _exists(self, path: str) -> bool:
        """Whether it is a file's name at all; a name that leads out is refused by the call."""
        place = locate(path, self.runner.context)
        return isinstance(place, Refused) or place.path.exists()

    async def _call(self, tool: str, arguments: JsonObject) -> str:
        call_id = f"opening_{len(self.draft.parts) + 1}"
        part = self.draft.add(ToolUse(call_id=call_id, name=tool, state=Pending()))
        call = ToolCall(call_id=call_id, name=tool, arguments=json.dumps(arguments))
        await self.runner.answer(call, part, self.draft, tools_off=False)
        match self.draft.parts[part.idx].body:
            case ToolUse(state=Completed(output=said) | Failed(error=said)):
                return said
            case _:
                return ""
