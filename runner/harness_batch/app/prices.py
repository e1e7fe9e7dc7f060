"""A cost that is bounded must be known: every model of a run with `--max-cost` has prices."""

from harness_batch.app.child_faults import child_models
from harness_batch.app.options import RunOptions
from harness_batch.app.prepare import Prepared
from harness_batch.errors import UsageError
from harness_batch.plan.choice import is_priced, wants_prices


def require_prices(prepared: Prepared, options: RunOptions) -> None:
    """Raises: UsageError that names the first model without prices."""
    if options.max_cost is None:
        return
    items = prepared.plan.items
    models = [ref for item in items for ref in (*item.models, item.small_model) if ref]
    models += child_models(items, prepared.child_items)
    for ref in dict.fromkeys(models):
        if not is_priced(ref, prepared.config):
            raise UsageError(wants_prices("--max-cost", ref))
