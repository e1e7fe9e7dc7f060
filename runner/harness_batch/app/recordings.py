"""Where recordings come from: a file, a session of a run, or one that only the history knows."""

from functools import partial
from pathlib import Path

from attrs import evolve, frozen

from harness_batch.app.finish import session_of
from harness_batch.app.places import harness_of, history_of
from harness_batch.app.recorder import recording_of, standing_at
from harness_batch.config.record import Config, ModelInfo
from harness_batch.errors import UsageError
from harness_batch.messages import ModelRef
from harness_batch.models.catalog import known
from harness_batch.models.recording import Recording
from harness_batch.models.recording_file import read_recording, recording_text
from harness_batch.models.renames import portable
from harness_batch.recipe.places import find_recipe
from harness_batch.store.disk import write_text
from harness_batch.store.masking import Mask
from harness_batch.store.story import Story, story_of_database, story_of_journal


@frozen(kw_only=True)
class Source:
    """A recording, and what belongs to it on this machine."""

    name: str
    """As the user named it."""
    recording: Recording
    recipe: Path | None
    """None: it is not there any more."""
    repo: str | None
    """The repository that it was recorded on; None: the file does not say."""
    accepted: Path
    """Where `--update` writes."""


@frozen(kw_only=True)
class Lookup:
    """Where sessions are looked for."""

    run: str | None
    db: Path | None
    cwd: Path
    config: Config


def source_of(word: str, lookup: Lookup) -> Source:
    """What the user named: a recording's file, or a session by its id or its item's key.

    Raises: UsageError, FaultyInput, StorageError.
    """
    path = lookup.cwd / word
    if path.is_file():
        recording = read_recording(path)
        recipe = _recipe_beside(recording, path)
        return Source(name=word, recording=recording, recipe=recipe, repo=None, accepted=path)
    story = _story(word, lookup)
    root = story.sessions[0]
    if root.parent_id is not None:
        raise UsageError(f"{word} is a child session; replay {root.parent_id}, which started it")
    accepted = harness_of(lookup.cwd) / "recordings" / f"{root.session_id}.json"
    if accepted.is_file():
        recording = read_recording(accepted)
    else:
        recording = recording_of(story, partial(_known, lookup.config))
    recipe = Path(root.recipe_file) if root.recipe_file else None
    return Source(
        name=word,
        recording=recording,
        recipe=recipe if recipe is not None and recipe.is_file() else None,
        repo=root.repo if root.repo and Path(root.repo).is_dir() else None,
        accepted=accepted,
    )


def save(source: Source, recording: Recording, place: Path, mask: Mask) -> None:
    """Write a recording, secrets masked. Raises: StorageError, UsageError."""
    if source.recipe is not None and Path(recording.recipe).suffix:
        recording = evolve(recording, recipe=str(source.recipe.resolve()))
    place.parent.mkdir(parents=True, exist_ok=True)
    write_text(place, mask(portable(recording_text(standing_at(recording, place)))))


def _recipe_beside(recording: Recording, file: Path) -> Path | None:
    near = file.parent / recording.recipe
    if near.is_file():
        return near
    try:
        return find_recipe(recording.recipe, file.parent)
    except UsageError:
        return None


def _story(word: str, lookup: Lookup) -> Story:
    try:
        folder, session_id = session_of(word, lookup.run, lookup.cwd)
    except UsageError as error:
        history = history_of(lookup.db, lookup.cwd)
        if not word.startswith("ses_") or not history.is_file():
            raise
        try:
            return story_of_database(history, word)
        except UsageError:
            raise error from None
    if folder.journal.exists():
        return story_of_journal(folder.journal, session_id)
    return story_of_database(folder.database, session_id)


def _known(config: Config, ref: ModelRef) -> ModelInfo:
    settings = config.providers.get(ref.provider)
    return ModelInfo() if settings is None else known(settings, ref.model)
