"""What keeps a provider of the plan from being asked: told by `validate`, `plan` and `run` alike.

What cannot run is an error. A missing key is a warning: where recipes are checked there often are
no keys, and in a run it is the provider's refusal, like a wrong one.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness_batch.app.child_faults import child_models
from harness_batch.config.record import Config
from harness_batch.errors import Fault, FaultyInput, Unsupported
from harness_batch.messages import ModelRef
from harness_batch.models.readiness import lacking, require_runnable
from harness_batch.plan.child_items import ChildItems
from harness_batch.plan.item import Item


def preflight(items: Iterable[Item], children: ChildItems, config: Config) -> Iterator[Fault]:
    """The warnings. Raises: UserError."""
    told: set[str] = set()
    for ref, file in _asked(items, children).items():
        settings = config.providers[ref.provider]
        try:
            require_runnable(ref, settings)
        except Unsupported as error:
            raise FaultyInput([Fault(file, 0, 0, f"model {ref}: {error}")]) from None
        if ref.provider not in told and (lack := lacking(settings)) is not None:
            told.add(ref.provider)
            yield Fault(file, 0, 0, f"model {ref}: {lack}", "warning")


def _asked(items: Iterable[Item], children: ChildItems) -> dict[ModelRef, Path]:
    """Every model that may be asked, with the first recipe that it is asked for."""
    by_file: dict[Path, list[Item]] = {}
    for item in items:
        by_file.setdefault(item.recipe.file, []).append(item)
    found: dict[ModelRef, Path] = {}
    for file, alike in by_file.items():
        own = (ref for item in alike for ref in (*item.models, item.small_model) if ref)
        for ref in (*own, *child_models(alike, children)):
            found.setdefault(ref, file)
    return found
