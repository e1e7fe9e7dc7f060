"""Whether a provider's key is there, how it travels, and where a missing one should come from."""

import re
from urllib.parse import urlsplit

from attrs import frozen

from harness_batch.config.record import ProviderSettings
from harness_batch.errors import AuthFailed, UsageError

_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
}
"""Of the providers that are there without being configured."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _sendable(value: str) -> bool:
    """Fit for the value of a header."""
    return value.isascii() and value.isprintable()


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
        if key and _sendable(key):
            headers[self.header] = f"Bearer {key}" if self.header == "authorization" else key
        for name, value in self.settings.headers.items():
            if not (_TOKEN.fullmatch(name) and _sendable(value)):
                shown = repr(name)[:80]
                raise UsageError(f"provider {self.settings.name}: header {shown} cannot be sent")
            headers[name.lower()] = value
        return headers

    def hint(self) -> str:
        """Where the key comes from."""
        if variable := self._variable():
            return f"check {variable}" if self._key() else f"set {variable}"
        return f"check api_key of provider {self.settings.name} in the configuration"

    def demand(self) -> None:
        """Raises: AuthFailed when a request would go out without the key it needs."""
        name, key = self.settings.name, self._key()
        if not _sendable(key) or " " in key:
            # Not a word of it: it is quoted nowhere, least of all when it is half right.
            raise AuthFailed(f"{name}: the API key holds a blank or a strange sign; {self.hint()}")
        sent = {header.lower() for header in self.settings.headers}
        if key or sent & {"authorization", "x-api-key", "api-key"} or not self._wanted():
            return
        variable = self._variable()
        mend = f"set {variable}" if variable else f"set api_key of provider {name}"
        raise AuthFailed(f"{name}: no API key; {mend}")

    def _key(self) -> str:
        return (self.settings.api_key or "").strip()

    def _variable(self) -> str | None:
        """The environment variable that the key is taken from."""
        return self.settings.api_key_env or _VARIABLES.get(self.settings.name)

    def _wanted(self) -> bool:
        at_home = urlsplit(self.base_url).hostname == urlsplit(self.home).hostname
        return at_home or self.settings.name in _VARIABLES
