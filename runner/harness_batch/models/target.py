"""Which model the requests of a session are written for, and what is known of how it is asked."""

from attrs import Factory, frozen

from harness_batch.config.model_options import ModelOptions
from harness_batch.config.record import Abilities


@frozen
class Target:
    """A model behind a base URL."""

    model: str
    base_url: str = ""
    options: ModelOptions = Factory(ModelOptions)
    abilities: Abilities = Factory(Abilities)

    def temperature(self, asked: float | None) -> float | None:
        """What may be sent: a model that is known to take none gets none."""
        return None if self.abilities.temperature is False else asked
