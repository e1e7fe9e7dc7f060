"""Rules of `webfetch`: a pattern is matched part by part, never as one text. Pure.

`[SCHEME://]HOST[:PORT][/PATH]`. `*` alone is everything. A scheme left out is either. In a host a
leading `*.` is any depth of subdomains and `*` elsewhere stays within one label, so nothing that
only looks like the host matches; a port left out is the scheme's own; `*` in a path (which the
query belongs to) matches anything. A deny is read widely: a port left out is every port, and a
path denies whatever its query.
"""

import re
from functools import lru_cache

from attrs import frozen

from harness_batch.permissions.matcher import matches
from harness_batch.permissions.web_url import DEFAULT_PORTS, WebUrl, normal_host, parse_url

_FORM = re.compile(r"(?:([a-z*]+)://)?(\[[^\]/]*\]|[^/:\[\]]+)(?::([0-9]+|\*))?(/.*)?", re.DOTALL)


@frozen
class UrlPattern:
    """A pattern taken apart. None: not said."""

    scheme: str | None
    host: str
    port: str | None
    path: str | None


def url_matches(pattern: str, url: str, *, widely: bool) -> bool:
    """Does the normal form `url` match? `widely` for a rule that does not allow."""
    if pattern == "*":
        return True
    parsed, parts = _parsed(url), url_pattern(pattern)
    if parsed is None or parts is None:
        return widely and matches(pattern, url)
    if parts.scheme not in (None, "*", parsed.scheme):
        return False
    if not _host_matches(parts.host, parsed.host) or not _port_matches(parts, parsed, widely):
        return False
    if parts.path is None or matches(parts.path, parsed.target):
        return True
    return widely and matches(parts.path, parsed.path)


@lru_cache(4096)
def url_pattern(pattern: str) -> UrlPattern | None:
    """The parts; None when the pattern is none that a URL could match."""
    found = _FORM.fullmatch(pattern)
    if found is None:
        return None
    scheme, host, port, path = found.groups()
    if port is None and path is None and len(host) > 1 and host.endswith("*"):
        # `https://host*` was meant as all pages of the host, not as all hosts that begin so.
        host = host[:-1]
    if "*" not in host:
        host = normal_host(host) or ""
    return UrlPattern(scheme, host.lower(), port, path) if host else None


@lru_cache(4096)
def _parsed(url: str) -> WebUrl | None:
    parsed = parse_url(url)
    return None if isinstance(parsed, str) else parsed


def _host_matches(pattern: str, host: str) -> bool:
    if pattern in ("*", host):
        return True
    if ":" in host or host.replace(".", "").isdigit():
        return False
    wanted, labels = pattern.split("."), host.split(".")
    if wanted[0] == "*":
        wanted = wanted[1:]
        if len(labels) <= len(wanted):
            return False
        labels = labels[-len(wanted) :]
    return len(wanted) == len(labels) and all(map(matches, wanted, labels))


def _port_matches(parts: UrlPattern, url: WebUrl, widely: bool) -> bool:
    if parts.port is None:
        return widely or url.port == DEFAULT_PORTS[url.scheme]
    return parts.port == "*" or int(parts.port) == url.port
