"""Images in a transcript: how much they count, and what stands in place of one that was refused."""

from collections.abc import Sequence

from attrs import evolve

from harness_batch.messages import Completed, Part, ToolUse, Turn

IMAGE_BYTES = 6_000
"""Of text that an image counts as: about 1,500 tokens, whatever the size of its file."""
REFUSED = "[the provider refused the image; it is not shown]"


def without_new_images(turns: Sequence[Turn]) -> list[Turn] | None:
    """The turns without the images of the newest reply; None when it has none."""
    for place in reversed(range(len(turns))):
        turn = turns[place]
        if turn.message.role == "assistant":
            parts = tuple(map(_bare, turn.parts))
            if parts == turn.parts:
                return None
            return [*turns[:place], evolve(turn, parts=parts), *turns[place + 1 :]]
    return None


def _bare(part: Part) -> Part:
    match part.body:
        case ToolUse(state=Completed(images=[_, *_]) as state) as use:
            told = evolve(state, output=f"{state.output}\n{REFUSED}", images=())
            return evolve(part, body=evolve(use, state=told))
        case _:
            return part
