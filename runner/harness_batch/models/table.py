"""The providers that can be named in a configuration, and which connection serves each."""

from collections.abc import Callable, Mapping
from functools import partial

from harness_batch.config.record import ProviderSettings
from harness_batch.errors import Unsupported
from harness_batch.messages import ModelRef
from harness_batch.models import anthropic, openai_chat, openai_responses
from harness_batch.models.hosted import HostedModel
from harness_batch.models.protocol import Model
from harness_batch.models.scripted import ScriptedModel

Connect = Callable[[ModelRef, ProviderSettings], Model]

TABLE: Mapping[str, Connect] = {
    "anthropic": partial(HostedModel, wire=anthropic.WIRE),
    "openai-chat": partial(HostedModel, wire=openai_chat.WIRE),
    "openai-responses": partial(HostedModel, wire=openai_responses.WIRE),
    "scripted": ScriptedModel,
}


def connect(ref: ModelRef, settings: ProviderSettings) -> Model:
    """A session's connection to a model; nothing is sent yet.

    Raises: Unsupported for a type that this version does not speak; UsageError for a base URL or
    proxy that is none; FaultyInput for a faulty script.
    """
    opened = TABLE.get(settings.type)
    if opened is None:
        known = ", ".join(TABLE)
        raise Unsupported(
            f"provider {settings.name}: type {settings.type} is not supported yet; "
            f"there are {known}"
        )
    return opened(ref, settings)
