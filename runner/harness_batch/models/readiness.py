"""Can a provider be asked at all? Known before anything is connected: by type, script and key.

Light to import: `validate` must not load what only a connection needs.
"""

from collections.abc import Mapping
from pathlib import Path

from harness_batch.config.keys import KEYLESS
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import AuthFailed, Unsupported, UsageError
from harness_batch.messages import ModelRef
from harness_batch.models.keys import Credential, missing_key
from harness_batch.models.recording_file import read_recording
from harness_batch.models.script_file import read_script

HOMES: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
}
"""The vendor's own base URL of each wire format: `home` of the `Wire`."""
KNOWN = (*HOMES, "copilot", "scripted", "replay")
"""Types that can be connected to: the keys of `table.TABLE`."""


def require_runnable(ref: ModelRef, settings: ProviderSettings) -> None:
    """Raises: Unsupported for a type that this version does not speak; FaultyInput for a faulty
    script or recording; UsageError for an `auth.json` that would be asked and cannot be trusted.
    """
    if settings.type not in KNOWN:
        known = ", ".join(KNOWN)
        told = f"provider {settings.name}: type {settings.type} is not supported yet"
        raise Unsupported(f"{told}; there are {known}")
    if settings.type == "scripted":
        read_script(Path(ref.model))
    if settings.type == "replay":
        read_recording(Path(ref.model))
    if settings.key_origin.trouble is not None:
        raise UsageError(settings.key_origin.trouble)


def lacking(settings: ProviderSettings) -> str | None:
    """Why the provider would refuse every request for want of a key; None when it has one."""
    if settings.type in KEYLESS:
        return None
    if settings.type == "copilot" and not settings.api_key:
        return f"{settings.name}: no GitHub login; {missing_key(settings)}"
    home = HOMES.get(settings.type, "")
    try:
        Credential(settings, settings.base_url or home, "authorization", home).demand()
    except AuthFailed as error:
        return str(error)
    return None
