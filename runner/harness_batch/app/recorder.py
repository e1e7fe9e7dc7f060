"""A session's story made a recording: the replies of its models, and what its tools answered."""

from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve

from harness_batch.codec import as_json
from harness_batch.config.record import ModelInfo
from harness_batch.engine.stream_parts import CUT_OFF
from harness_batch.errors import CallErrorKind
from harness_batch.messages import (
    Completed,
    Failed,
    FinishReason,
    ModelRef,
    Reasoning,
    Running,
    Text,
    TokenUsage,
    ToolUse,
)
from harness_batch.models.recording import (
    Block,
    Called,
    RecordedCall,
    RecordedSession,
    Recording,
    Result,
    Said,
    Thought,
    Trouble,
)
from harness_batch.recipe.places import bundled_recipes
from harness_batch.records import ModelCall, Session
from harness_batch.store.story import Piece, Story

KINDS: dict[str, CallErrorKind] = {
    kind: kind
    for kind in (
        "rate_limit",
        "unavailable",
        "network",
        "timeout",
        "auth",
        "model",
        "protocol",
        "context_overflow",
        "quota",
    )
}
FINISHES: dict[str, FinishReason] = {
    reason: reason for reason in ("stop", "tool_calls", "length", "content_filter", "unknown")
}
_OPTIONS = ("allow", "deny", "limit")


def recording_of(story: Story, known: Callable[[ModelRef], ModelInfo]) -> Recording:
    """The recording. `known`: what there is to know of a model, its windows for one."""
    root = story.sessions[0]
    places = {session.session_id: at for at, session in enumerate(story.sessions)}
    sessions = tuple(_session(story, session, places) for session in story.sessions)
    asked = {call.model for session in sessions for call in session.calls}
    infos = {model: known(ModelRef.parse(model)) for model in sorted(asked)}
    return Recording(
        recipe=_recipe_name(root.recipe_file or ""),
        item=root.item_key,
        params=root.params,
        matrix=root.matrix,
        agent=root.agent,
        base=root.base_sha,
        options=tuple(_options(story.argv)),
        windows={
            model: ModelInfo(context=info.context, output=info.output)
            for model, info in infos.items()
            if info.context or info.output
        },
        sessions=sessions,
    )


def standing_at(recording: Recording, place: Path) -> Recording:
    """The recording for a file at `place`: its recipe named from there, or bundled by name."""
    file = Path(recording.recipe)
    if not file.is_absolute():
        return recording
    return evolve(recording, recipe=_walked(file, place.parent.resolve()).as_posix())


def _walked(file: Path, folder: Path) -> Path:
    """`file` from `folder`, with `..` where it has to be."""
    common = next(up for up in (folder, *folder.parents) if file.is_relative_to(up))
    ups = len(folder.relative_to(common).parts)
    return Path(*[".."] * ups, file.relative_to(common))


def _recipe_name(file: str) -> str:
    path = Path(file)
    bundled = bundled_recipes().get(path.stem)
    return path.stem if bundled is not None and bundled.resolve() == path.resolve() else file


def _options(argv: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """`--allow X` and `--allow=X` and the like, in order."""
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name.removeprefix("--") not in _OPTIONS or not name.startswith("--"):
            continue
        if equals:
            yield name[2:], value
        elif at + 1 < len(argv):
            yield name[2:], argv[at + 1]


def _session(story: Story, session: Session, places: dict[str, int]) -> RecordedSession:
    own = session.session_id
    attempts = story.attempts.get(own, ())
    calls = (call for call in story.calls if call.session_id == own and _was_sent(call))
    return RecordedSession(
        recipe=session.recipe,
        agent=session.agent,
        prompts=tuple(_prompt(story, attempt) for attempt in attempts),
        parent=None if session.parent_id is None else places.get(session.parent_id),
        status=session.status,
        reason=session.reason,
        calls=tuple(_call(story, call) for call in calls),
        checks={c.name: c.passed for c in story.checks if c.session_id == own},
    )


def _was_sent(call: ModelCall) -> bool:
    """It has an end, and one that was not ours."""
    return call.finish_reason is not None or call.error_kind in KINDS


def _prompt(story: Story, attempt_id: str) -> str:
    """The first thing that the user said in the attempt."""
    for message in story.messages.values():
        if message.attempt_id == attempt_id and message.role == "user":
            texts = (piece.body for piece in story.pieces.get(message.id, ()))
            said = "".join(body.text for body in texts if isinstance(body, Text))
            if said:
                return said
    return ""


def _call(story: Story, call: ModelCall) -> RecordedCall:
    pieces = story.pieces.get(call.message_id or "", ())
    blocks = (_block(piece) for piece in pieces)
    kind = KINDS.get(call.error_kind or "")
    return RecordedCall(
        model=f"{call.provider}/{call.request_model}",
        purpose=call.purpose,
        blocks=tuple(block for block in blocks if block is not None),
        finish=FINISHES.get(call.finish_reason or ""),
        usage=_usage(call),
        trouble=kind and Trouble(kind=kind, message=call.error or kind, status=call.http_status),
    )


def _usage(call: ModelCall) -> TokenUsage | None:
    if call.input_tokens is None:
        return None
    return TokenUsage(
        input=call.input_tokens,
        cache_read=call.cache_read_tokens or 0,
        cache_write_5m=call.cache_write_5m_tokens or 0,
        cache_write_1h=call.cache_write_1h_tokens or 0,
        output=call.output_tokens or 0,
        reasoning=call.reasoning_tokens or 0,
    )


def _block(piece: Piece) -> Block | None:
    match piece.body:
        case Text(text=text, synthetic=False):
            return Said(text)
        case Reasoning(text=text, signature=signature, redacted=redacted):
            return Thought(text=text, signature=signature, redacted=redacted)
        case ToolUse() as use:
            return Called(
                call_id=use.call_id,
                name=use.name,
                arguments=piece.arguments if piece.arguments is not None else _arguments(use),
                whole=not (isinstance(use.state, Failed) and use.state.error == CUT_OFF),
                result=_result(use),
            )
        case _:
            return None


def _arguments(use: ToolUse) -> str:
    match use.state:
        case Running(input=given) | Completed(input=given) | Failed(input=given):
            return as_json(given).decode()
        case _:
            return "{}"


def _result(use: ToolUse) -> Result | None:
    match use.state:
        case Completed(output=output):
            return Result(failed=False, output=output)
        case Failed(error=error) if error != CUT_OFF:
            return Result(failed=True, output=error)
        case _:
            return None
