"""A URL as exactly one thing: what the rules are asked about is what will be dialled. Pure.

The parsing is strict and our own, so that no second parser can see another host in the same text.
Every spelling of a host comes down to one: lower case, ASCII (IDNA), no final dot, an IP address in
its canonical form however it was written (`127.1`, `0x7f000001`, `2130706433`).
"""

import ipaddress
import re
import string
from urllib.parse import quote

from attrs import frozen

MAX_CHARACTERS = 4096
DEFAULT_PORTS = {"http": 80, "https": 443}

_FORM = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
_AMBIGUOUS = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
"""Letters that the two standards of IDNA take for different hosts."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_TRIPLET = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_KEPT = "%/:@!$&'()*+,;=~-._?[]|^`{}\"<>"
"""What `quote` leaves alone: all of ASCII that the form lets through."""


@frozen
class WebUrl:
    """An absolute http or https URL in its normal form."""

    scheme: str
    host: str
    """A name in ASCII, or an IP address; IPv6 without brackets."""
    port: int
    path: str
    """Begins with `/`; no dot segments."""
    query: str | None = None

    @property
    def authority(self) -> str:
        """Host, and port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """Path and query."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> WebUrl | str:
    """The URL, or words on why it is none that may be fetched."""
    if len(text) > MAX_CHARACTERS:
        return f"the URL has {len(text)} characters, at most {MAX_CHARACTERS} are possible"
    if _FORBIDDEN.search(text):
        return "the URL holds a blank, a backslash or a control character; percent-encode it"
    found = _FORM.fullmatch(text)
    if found is None:
        return "the URL must be absolute: https://host/path"
    scheme = found[1].lower()
    if scheme not in DEFAULT_PORTS:
        return f"only http and https can be fetched, not {scheme}"
    place = _authority(found[2], scheme)
    if isinstance(place, str):
        return place
    return WebUrl(scheme, *place, _path(found[3]), None if found[4] is None else _clean(found[4]))


def join_url(base: WebUrl, location: str) -> WebUrl | str:
    """Where a redirect leads; words when that is nowhere."""
    location = location.strip(" \t")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", location):
        return parse_url(location)
    if location.startswith("//"):
        return parse_url(f"{base.scheme}:{location}")
    start = f"{base.scheme}://{base.authority}"
    if location.startswith("/"):
        return parse_url(start + location)
    if location.startswith("?"):
        return parse_url(start + base.path + location)
    if not location or location.startswith("#"):
        return base
    return parse_url(start + base.path.rpartition("/")[0] + "/" + location)


def normal_host(text: str) -> str | None:
    """A host's one spelling, IPv6 in brackets or not; None when it is no host."""
    if text.startswith("["):
        return _ip(text[1:-1], 6) if text.endswith("]") else None
    if not text.isascii():
        if _AMBIGUOUS.search(text):
            return None
        try:
            text = text.encode("idna").decode()
        except UnicodeError:
            return None
    text = text.lower().removesuffix(".")
    labels = text.split(".")
    if len(text) > 253 or not all(map(_LABEL.fullmatch, labels)):
        return None
    return _ipv4(labels) if _NUMBER.fullmatch(labels[-1]) else text


def _authority(text: str, scheme: str) -> tuple[str, int] | str:
    if "@" in text or "%" in text:
        return "the URL may hold neither user name nor password, nor % in its host"
    found = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", text, re.ASCII)
    host = normal_host(found[1]) if found else None
    if found is None or host is None:
        return f"{text!r} is no host"
    port = int(found[2] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        return f"{port} is no port"
    return host, port


def _ip(text: str, version: int) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(address) if address.version == version and "%" not in text else None


def _ipv4(labels: list[str]) -> str | None:
    """As inet_aton reads it: one to four numbers in base 10, 8 or 16, the last fills the rest."""
    if len(labels) > 4 or not all(map(_NUMBER.fullmatch, labels)):
        return None
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        return None
    *heads, last = numbers
    if any(head > 255 for head in heads) or last >= 256 ** (5 - len(numbers)):
        return None
    value = sum(head << (24 - 8 * place) for place, head in enumerate(heads)) + last
    return str(ipaddress.IPv4Address(value))


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)


def _path(text: str) -> str:
    segments: list[str] = []
    *inner, last = _clean(text or "/").split("/")[1:]
    for segment in inner:
        if segment == "..":
            segments[-1:] = []
        elif segment != ".":
            segments.append(segment)
    if last == "..":
        segments[-1:] = []
    tail = "" if last in {".", ".."} else last
    return "/" + "".join(f"{segment}/" for segment in segments) + tail


def _clean(text: str) -> str:
    """Percent-encoding in its one form: only what needs it, in upper case."""
    return _TRIPLET.sub(_decoded, quote(text, safe=_KEPT))


def _decoded(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter in _UNRESERVED else f"%{found[1].upper()}"
