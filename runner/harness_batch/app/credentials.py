"""Which providers have a credential, and from where; keys put into `auth.json` and taken out."""

from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from harness_batch.config.auth_file import NAME, drop_key, store_key, user_folder
from harness_batch.config.keys import KEYLESS
from harness_batch.config.record import Config, ProviderSettings
from harness_batch.errors import UsageError
from harness_batch.models.keys import faulty_key, missing_key
from harness_batch.words import nearest

MOST_KEY_BYTES = 64 * 1024


@frozen(kw_only=True)
class CredentialState:
    """What is known of one provider's credential; never the credential."""

    provider: str
    type: str
    ready: bool
    source: str | None
    """Where it comes from; None: there is none, or none is needed."""
    told: str
    """The same in words, with the mend where there is none."""


def credential_states(config: Config) -> tuple[CredentialState, ...]:
    """All providers, by name."""
    return tuple(_state(config.providers[name]) for name in sorted(config.providers))


def _state(settings: ProviderSettings) -> CredentialState:
    source = settings.key_origin.place
    wrong = faulty_key(settings)
    if settings.type in KEYLESS:
        ready, told = True, "ready: needs no key"
    elif wrong is not None:
        ready, told = False, wrong
    elif settings.api_key:
        ready, told = True, f"ready: key from {source}"
    else:
        ready, told = False, f"no key: {missing_key(settings)}"
    return CredentialState(
        provider=settings.name, type=settings.type, ready=ready, source=source, told=told
    )


def known_provider(name: str, config: Config) -> ProviderSettings:
    """A provider that a key can be stored for. Raises: UsageError."""
    settings = config.providers.get(name)
    if settings is None:
        known = ", ".join(sorted(config.providers))
        close = nearest(name, config.providers)
        raise UsageError(f"unknown provider `{name}`{close} (configured: {known})")
    if settings.type in KEYLESS:
        raise UsageError(f"provider {name} is of type {settings.type}: it needs no key")
    return settings


def key_of(content: bytes, source: str) -> str:
    """The key that a file holds. Raises: UsageError, which quotes nothing of it."""
    if len(content) > MOST_KEY_BYTES:
        raise UsageError(f"{source} holds more than {MOST_KEY_BYTES:,} bytes: that is no key")
    try:
        key = content.decode("ascii").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{source} holds no key: there is a strange sign in it") from None
    if not key:
        raise UsageError(f"{source} holds no key: it is empty")
    if not key.isprintable() or " " in key:
        raise UsageError(f"{source} must hold one key on one line, without blanks")
    return key


def auth_file(environ: Mapping[str, str]) -> Path:
    """Where keys are stored. Raises: UsageError."""
    folder = user_folder(environ)
    if folder is None:
        raise UsageError(f"there is no place for {NAME}: set HOME or XDG_CONFIG_HOME")
    return folder / NAME


def store(provider: str, key: str, environ: Mapping[str, str]) -> Path:
    """Put a key into the user's `auth.json`; its path. Raises: UsageError."""
    file = auth_file(environ)
    store_key(file, provider, key)
    return file


def drop(provider: str, environ: Mapping[str, str]) -> Path | None:
    """Take a provider's key out; the file, or None when it held none. Raises: UsageError."""
    file = auth_file(environ)
    return file if drop_key(file, provider) else None
