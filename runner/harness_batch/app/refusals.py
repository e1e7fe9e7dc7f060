"""What this host cannot give a recipe: told before any model call, never worked around."""

from collections.abc import Iterable

from harness_batch.app.options import SandboxMode
from harness_batch.plan.item import Item
from harness_batch.sandbox.probe import host_properties

REQUIRED = ("write-confined", "net-none", "secrets-hidden", "no-survivors")
"""What `--sandbox required` asks for."""


async def host_refusals(
    items: Iterable[Item], mode: SandboxMode
) -> tuple[dict[str, str], dict[str, object], tuple[str, ...]]:
    """Refusals by item key, the properties for the record, and words on what is missing.

    The host is probed once, by trying.
    """
    found = await host_properties()
    holds = {name for name, prop in found.items() if prop.holds}
    refused: dict[str, str] = {}
    for item in items:
        wish = item.recipe.sandbox
        if wish.external:
            continue
        needed = set(wish.need) | (set(REQUIRED) if mode == "required" else set())
        missing = sorted(needed - (set() if mode == "off" else holds))
        if missing:
            why = "; ".join(f"{name}: {_why(mode, found[name].why)}" for name in missing)
            refused[item.key] = f"the host does not give what is needed: {why}"
    lacking = [name for name in REQUIRED if name not in holds]
    told = ("no kernel sandbox: run only what you trust; see `harness-batch doctor`",)
    record: dict[str, object] = {
        "mode": mode,
        "mechanism": "supervisor",
        "properties": {name: prop.holds for name, prop in found.items()},
    }
    return refused, record, told if lacking and mode == "auto" else ()


def _why(mode: SandboxMode, why: str) -> str:
    return "--sandbox off" if mode == "off" else why
