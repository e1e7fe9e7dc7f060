"""Recordings being played in one run: each session of the plan has its own reels, as have its
children. Where a session's model is a recording, no other model is asked, whoever names one.
"""

from pathlib import Path

from attrs import define, evolve, field

from harness_batch.app.attempts import Models
from harness_batch.errors import UsageError
from harness_batch.messages import ModelRef
from harness_batch.models.recording_file import read_recording
from harness_batch.models.replayed import Played, Reel, ReplayedModel, models_asked
from harness_batch.plan.item import Item


@define
class Replays:
    """By item key, as long as its session lasts."""

    _played: dict[str, tuple[ModelRef, Played]] = field(factory=dict)

    def main(self, item: Item) -> Models:
        """The models of an item's session, from the recording's beginning.

        Raises: FaultyInput for a file that is no recording.
        """
        ref, played = item.models[0], Played(read_recording(Path(item.models[0].model)))
        self._played[item.key] = (ref, played)
        return _models(ref, played, played.main())

    def child(self, item: Item) -> Models | None:
        """Of a child session; None when its item is not being played.

        Raises: UsageError when the recording has no such child.
        """
        if item.key not in self._played:
            return None
        ref, played = self._played[item.key]
        reel = played.child(item.recipe.name, item.agent.name, item.recipe.prompt)
        if reel is None:
            who = f"of {item.recipe.name} with agent {item.agent.name}"
            raise UsageError(f"the recording {Path(ref.model).name} has no further child {who}")
        return _models(ref, played, reel)


def _models(ref: ModelRef, played: Played, reel: Reel) -> Models:
    """One model for each that was asked then, and one that summarises."""
    name, info = evolve(ref, model=Path(ref.model).name), played.info(reel.session)
    main, *fallbacks = (ReplayedModel(name, reel, info) for _ in range(models_asked(reel.session)))
    return Models(main, ReplayedModel(name, reel, info, "compaction"), tuple(fallbacks))
