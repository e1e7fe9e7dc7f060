"""How long sessions took in earlier runs, by the history; for whoever starts the longest first."""

from importlib.resources import files
from pathlib import Path

from attrs import Factory, frozen

from harness_batch.errors import HarnessError

UNKNOWN_SECONDS = 60.0
"""Of an item that nothing is known of; all such items weigh the same."""


@frozen
class Durations:
    """Median seconds of sessions that ended on merit."""

    of_items: dict[str, float] = Factory(dict)
    of_recipes: dict[str, float] = Factory(dict)

    def seconds(self, item_key: str, recipe: str) -> float:
        """The item's median, else its recipe's, else the same for all."""
        recipes = self.of_recipes.get(recipe, UNKNOWN_SECONDS)
        return self.of_items.get(item_key, recipes)


def recorded(history: Path) -> Durations:
    """What the history knows; nothing where there is none, or none that can be read. Blocks."""
    if not history.is_file():
        return Durations()
    from harness_batch.store.asking import open_readonly_for_user_sql  # noqa: PLC0415 - duckdb takes 100 ms, and most runs have no history to ask

    sql = files("harness_batch.store").joinpath("durations.sql").read_text("utf-8")
    try:
        with open_readonly_for_user_sql(history) as database:
            rows = list(database.ask(sql).rows)
    except HarnessError:
        return Durations()  # an order that is not the best is no reason to end a run
    found: dict[str, dict[str, float]] = {"item": {}, "recipe": {}}
    for kind, name, seconds in rows:
        if seconds is not None:
            found[kind][name] = float(seconds)
    return Durations(found["item"], found["recipe"])
