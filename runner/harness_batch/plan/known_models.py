"""What planning asks about models: whether there is such a model, and what its calls cost."""

from collections.abc import Collection
from typing import Protocol

from attrs import frozen

from harness_batch.config.record import ModelInfo, ProviderSettings


class KnownModels(Protocol):
    """Knows the models of configured providers."""

    def has(self, provider: ProviderSettings, model: str) -> bool:
        """False only where it is certain that the provider has no such model."""
        ...

    def names(self, provider: ProviderSettings) -> Collection[str]:
        """Its models as far as they are known, for a person who misspelt one."""
        ...

    def info(self, provider: ProviderSettings, model: str) -> ModelInfo:
        """What is known of the model."""
        ...


@frozen
class Configured:
    """What the configuration alone says."""

    def has(self, provider: ProviderSettings, model: str) -> bool:
        """See `KnownModels`: a list is complete unless the address is the user's own."""
        return not provider.models or provider.configured_base_url or model in provider.models

    def names(self, provider: ProviderSettings) -> Collection[str]:
        """See `KnownModels`."""
        return provider.models

    def info(self, provider: ProviderSettings, model: str) -> ModelInfo:
        """See `KnownModels`."""
        return provider.models.get(model, ModelInfo())


CONFIGURED = Configured()
