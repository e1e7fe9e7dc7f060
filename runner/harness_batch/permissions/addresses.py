"""Which IP addresses may be dialled for an agent: public ones, whatever form they come in. Pure."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_REFUSED: tuple[tuple[Network, str], ...] = (
    (ipaddress.IPv4Network("168.63.129.16/32"), "a metadata service"),
    (ipaddress.IPv4Network("100.64.0.0/10"), "a shared (carrier) address"),
    (ipaddress.IPv4Network("192.0.0.0/24"), "a special address"),
    (ipaddress.IPv4Network("192.88.99.0/24"), "a relay"),
    (ipaddress.IPv4Network("240.0.0.0/4"), "a reserved address"),
    (ipaddress.IPv6Network("::/96"), "an IPv4 address in disguise"),
    (ipaddress.IPv6Network("64:ff9b:1::/48"), "a local translation of IPv4"),
    (ipaddress.IPv6Network("2001::/23"), "a special address"),
    (ipaddress.IPv6Network("2002::/16"), "a tunnel"),
    (ipaddress.IPv6Network("fec0::/10"), "a site-local address"),
)
"""What `ipaddress` takes for public, or names no kind of."""


MAX_ADDRESSES = 4
"""Of one name; tried in the resolver's order."""


def addresses_to_dial(
    host: str, found: Sequence[str], allowed: Sequence[Network] = ()
) -> tuple[str, ...] | str:
    """What of a resolver's answer may be dialled, or words on why the host may not be.

    One address that is refused is enough to refuse the name: it is not known which the next
    caller would get.
    """
    for address in found:
        kind = refused_address(address, allowed)
        if kind is not None:
            return f"{host} leads to {address}, {kind}; only public hosts can be reached"
    return tuple(found[:MAX_ADDRESSES]) or f"{host} has no address"


def refused_address(text: str, allowed: Sequence[Network] = ()) -> str | None:
    """Why the address may not be dialled; None when it may. `allowed` are exempt."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "no address"
    if any(address in network for network in allowed):
        return None
    return _refusal(_unwrapped(address))


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _refusal(address: Address) -> str | None:
    for told, kind in (
        (address.is_loopback, "a loopback address"),
        (address.is_link_local, "a link-local (metadata) address"),
        (address.is_multicast, "a multicast address"),
        (address.is_unspecified, "no host's address"),
    ):
        if told:
            return kind
    for network, kind in _REFUSED:
        if address in network:
            return kind
    return None if address.is_global else "a private address"
