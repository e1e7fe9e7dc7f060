"""Whether a provider's key is there, how it travels, and where a missing one should come from."""

from urllib.parse import urlsplit

from attrs import frozen

from harness_batch.config.providers import is_header, is_sendable
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import AuthFailed, UsageError

_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
}
"""Of the providers that are there without being configured."""


def faulty_key(settings: ProviderSettings) -> str | None:
    """Why a key cannot be one; not a word of it: least of all when it is half right."""
    key = (settings.api_key or "").strip()
    if is_sendable(key) and " " not in key:
        return None
    return f"the API key holds a blank or a strange sign; {where_to_look(settings)}"


def where_to_look(settings: ProviderSettings) -> str:
    """Where a key that is refused comes from."""
    place = settings.key_origin.place
    if place is None or place == "the configuration":
        return f"check api_key of provider {settings.name} in the configuration"
    return f"check {place}"


def missing_key(settings: ProviderSettings) -> str:
    """How to give a provider the key that it lacks."""
    origin = settings.key_origin
    if origin.trouble is not None:
        return origin.trouble
    variable = origin.variable or _VARIABLES.get(settings.name)
    first = f"set {variable}" if variable else f"set api_key of provider {settings.name}"
    return f"{first}, or run `harness-batch auth login {settings.name}`"


@frozen
class Credential:
    """The key of one provider. `home` is the vendor's own base URL, which always wants one."""

    settings: ProviderSettings
    base_url: str
    header: str
    home: str

    def headers(self) -> dict[str, str]:
        """The header with the key (none without a good one), and those that the user configured.

        Raises: UsageError when one of those cannot be sent.
        """
        key = self._key()
        headers = {}
        if key and is_sendable(key):
            headers[self.header] = f"Bearer {key}" if self.header == "authorization" else key
        for name, value in self.settings.headers.items():
            if not is_header(name, value):
                shown = repr(name)[:80]
                raise UsageError(f"provider {self.settings.name}: header {shown} cannot be sent")
            headers[name.lower()] = value
        return headers

    def hint(self) -> str:
        """Where the key comes from."""
        return where_to_look(self.settings)

    def demand(self) -> None:
        """Raises: AuthFailed when a request would go out without the key it needs."""
        name, key = self.settings.name, self._key()
        if (wrong := faulty_key(self.settings)) is not None:
            raise AuthFailed(f"{name}: {wrong}")
        sent = {header.lower() for header in self.settings.headers}
        if key or sent & {"authorization", "x-api-key", "api-key"} or not self._wanted():
            return
        raise AuthFailed(f"{name}: no API key; {missing_key(self.settings)}")

    def _key(self) -> str:
        return (self.settings.api_key or "").strip()

    def _wanted(self) -> bool:
        at_home = urlsplit(self.base_url).hostname == urlsplit(self.home).hostname
        return at_home or self.settings.name in _VARIABLES
