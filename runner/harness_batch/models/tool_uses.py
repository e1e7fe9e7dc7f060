"""What goes back to a model of its tool calls: the arguments as it gave them, and one answer each.

A call is answered whatever became of it, since all wire formats refuse one without an answer.
"""

from harness_batch.config.record import Abilities
from harness_batch.messages import (
    Completed,
    Failed,
    Image,
    JsonObject,
    Pending,
    Running,
    ToolState,
)

INTERRUPTED = "interrupted before it finished; its effect is unknown"
NO_OUTPUT = "(no output)"


def arguments(state: ToolState) -> JsonObject:
    """The arguments; none where they never were a JSON object."""
    match state:
        case Pending():
            return {}
        case Running(input=given) | Completed(input=given) | Failed(input=given):
            return given


def answer(state: ToolState) -> tuple[str, bool]:
    """What the model reads, never empty, and whether that is an error."""
    match state:
        case Completed(output=output):
            return (output if output.strip() else NO_OUTPUT), False
        case Failed(error=error):
            return (error if error.strip() else "failed"), True
        case Pending() | Running():
            return INTERRUPTED, True


def pictures(state: ToolState, abilities: Abilities) -> tuple[Image, ...]:
    """What the model sees of it: nothing unless it is known to take images."""
    match state:
        case Completed(images=images) if abilities.images:
            return images
        case _:
            return ()


def data_url(image: Image) -> str:
    """The image as OpenAI's formats take it."""
    return f"data:{image.media_type};base64,{image.data}"
