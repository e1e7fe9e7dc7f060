"""The providers that can be named in a configuration, and which connection serves each."""

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve

from harness_batch.config.record import ProviderSettings
from harness_batch.messages import ModelRef
from harness_batch.models import anthropic, copilot, openai_chat, openai_responses
from harness_batch.models.access import KeyAccess, Keyring
from harness_batch.models.hosted import HostedModel, Wire
from harness_batch.models.keys import Credential
from harness_batch.models.protocol import Model
from harness_batch.models.readiness import require_runnable
from harness_batch.models.recording_file import read_recording
from harness_batch.models.replayed import Played, ReplayedModel
from harness_batch.models.scripted import ScriptedModel

Connect = Callable[[ModelRef, ProviderSettings, Keyring], Model]


def by_key(wire: Wire) -> Connect:
    """Models behind a wire format that want a key."""

    def connected(ref: ModelRef, settings: ProviderSettings, keyring: Keyring) -> HostedModel:
        base_url = settings.base_url or wire.home
        credential = Credential(settings, base_url, wire.key_header, wire.home)
        credential.headers()  # a faulty one is told before anything runs
        access = keyring.of(settings, lambda learned: KeyAccess(credential, learned))
        return HostedModel(ref, settings, wire, access)

    return connected


def by_login(ref: ModelRef, settings: ProviderSettings, keyring: Keyring) -> HostedModel:
    """Copilot's models."""
    access = keyring.of(settings, lambda learned: copilot.CopilotAccess(settings, learned))
    return HostedModel(ref, settings, copilot.WIRE, access)


def replayed(ref: ModelRef) -> ReplayedModel:
    """A recording played by itself: of a session with its children it is the session's own part."""
    played = Played(read_recording(Path(ref.model)))
    reel = played.main()
    return ReplayedModel(evolve(ref, model=Path(ref.model).name), reel, played.info(reel.session))


TABLE: Mapping[str, Connect] = {
    "anthropic": by_key(anthropic.WIRE),
    "openai-chat": by_key(openai_chat.WIRE),
    "openai-responses": by_key(openai_responses.WIRE),
    "copilot": by_login,
    "scripted": lambda ref, settings, _keyring: ScriptedModel(ref, settings),
    "replay": lambda ref, _settings, _keyring: replayed(ref),
}


def connect(ref: ModelRef, settings: ProviderSettings, keyring: Keyring | None = None) -> Model:
    """A session's connection to a model; nothing is sent yet. One keyring serves a run.

    Raises: Unsupported for a type that this version does not speak; UsageError for a base URL,
    header or proxy that is none; FaultyInput for a faulty script.
    """
    require_runnable(ref, settings)
    return TABLE[settings.type](ref, settings, keyring or Keyring())
