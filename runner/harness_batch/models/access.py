"""What opens a provider's door: the address and the headers of the next request.

One access serves all sessions of a run that use a provider, so that a refused credential is
renewed once, however many sessions it was refused to.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import trio
from attrs import Factory, define, evolve, field, frozen

from harness_batch.config.keys import read_again
from harness_batch.config.record import ProviderSettings
from harness_batch.models.keys import Credential

Learned = Callable[[str], None]
"""Is told every secret that was not known when the run began, before it is used."""


@frozen
class Entry:
    """What one request goes out with."""

    base_url: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    secret: str | None = field(default=None, repr=False)
    """Never to stand in an error, even when the provider quotes it."""
    hint: str = ""
    """Where the credential comes from, for the message of a refused one."""


class Access(Protocol):
    """One provider's credential, shared by all its sessions."""

    def demand(self) -> None:
        """Raises: AuthFailed when no request can go out, since a key is missing or no key."""
        ...

    async def entry(self) -> Entry:
        """For the next request. Raises: ProviderError when there is none to be had."""
        ...

    async def renew(self, refused: Entry) -> bool:
        """After a 401: whether there is another credential to try than the refused one.

        Raises: ProviderError when asking for one failed.
        """
        ...


@define
class KeyAccess:
    """A key. One that came out of a file may have been changed there in the meantime."""

    credential: Credential
    learned: Learned = field(repr=False)
    _asking: trio.Lock = field(factory=trio.Lock)

    def demand(self) -> None:
        """See `Access`."""
        self.credential.demand()

    async def entry(self) -> Entry:
        """See `Access`."""
        await trio.lowlevel.checkpoint()
        return self.current()

    def current(self) -> Entry:
        """What requests go out with now. Raises: UsageError for a header that cannot be sent."""
        known = self.credential
        headers, secret = known.headers(), known.settings.api_key
        return Entry(known.base_url, headers, secret, known.hint())

    async def renew(self, refused: Entry) -> bool:
        """See `Access`."""
        async with self._asking:
            settings = self.credential.settings
            if settings.api_key != refused.secret:
                return True  # another session was here before
            key = await trio.to_thread.run_sync(read_again, settings)
            if key is None or key == refused.secret:
                return False
            self.learned(key)
            self.credential = evolve(self.credential, settings=evolve(settings, api_key=key))
            return True


@define
class Keyring:
    """The accesses of a run, one for each provider, made when they are first asked for."""

    learned: Learned = field(default=lambda _secret: None, repr=False)
    _accesses: dict[str, Access] = Factory(dict)

    def of(self, settings: ProviderSettings, make: Callable[[Learned], Access]) -> Access:
        """The provider's access; `make` makes it."""
        if settings.name not in self._accesses:
            self._accesses[settings.name] = make(self.learned)
        return self._accesses[settings.name]
