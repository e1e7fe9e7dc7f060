"""The ways in which a secret may be spelled, and finding them in a text.

The value itself, escaped for JSON (once, and twice: arguments inside arguments), HTML or a URL,
base64 or base32 at any alignment, hex with or without marks, or reversed, on one line or broken
over several (as `base64` and `xxd -p` print it).
"""

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Final, TypeAlias
from urllib.parse import quote, quote_plus

MASKED: Final = "[masked]"
"""What stands where a secret stood."""
SHORTEST_SECRET: Final = 6
"""Characters; a shorter value would be found everywhere."""


_BREAK: Final = re.compile(r"(?:[\r\n]|\\[rn])++")
"""What stands between the lines of a broken spelling, as it is or escaped."""


def _joined(text: str) -> str:
    """Without line breaks; much faster than the pattern."""
    for line_end in ("\r", "\n", "\\r", "\\n"):
        text = text.replace(line_end, "")
    return text


Span: TypeAlias = tuple[int, int]
_HEAD: Final = 4
"""Characters by which most places of a text are told to begin no secret."""


class Spellings:
    """Finds texts in a text, also where line breaks stand inside of them. Immutable."""

    def __init__(self, forms: tuple[str, ...]) -> None:
        self._forms = forms
        self._sorted = sorted(forms)
        self._heads = frozenset(form[:_HEAD] for form in forms)
        longest = max((len(form) - 1 for form in forms), default=0)
        self._reach = longest + longest // 8  # room for line breaks

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Made when one is found: most runs never see their secrets."""
        return re.compile("|".join(map(re.escape, self._forms)))

    def masked(self, text: str) -> str:
        """The text with each of them replaced; the text itself when there is none."""
        pieces: list[str] = []
        done = 0
        for start, end in self._broken(text):
            pieces += text[done:start], MASKED
            done = end
        if pieces:
            text = "".join([*pieces, text[done:]])
        return self._pattern.sub(MASKED, text) if self._holds(text) else text

    def spans(self, text: str) -> list[Span]:
        """Where they stand."""
        whole = self._pattern.finditer(text) if self._holds(text) else ()
        return [match.span() for match in whole] + self._broken(text)

    def open_end(self, text: str) -> int:
        """Where the end begins that may grow into one of them; the text's length when none does."""
        found = self.spans(text)
        for start in range(max(0, len(text) - self._reach), len(text)):
            head = _joined(text[start : start + 2 * _HEAD])[:_HEAD]
            if len(head) == _HEAD and head not in self._heads:
                continue
            end = _joined(text[start:])
            if end and self._begins(end) and not any(a < start < b for a, b in found):
                return start
        return len(text)

    def _begins(self, end: str) -> bool:
        """Whether it is the beginning of a longer form."""
        at = bisect_right(self._sorted, end)
        return at < len(self._sorted) and self._sorted[at].startswith(end)

    def stand_in(self, text: str) -> bool:
        """Whether one does."""
        return self._holds(text) or bool(self._broken(text))

    def _holds(self, text: str) -> bool:
        return any(form in text for form in self._forms)

    def _broken(self, text: str) -> list[Span]:
        """Where one begins before a line break and ends behind it, in order."""
        quick = _joined(text)
        if len(quick) == len(text) or not self._holds(quick):
            return []
        breaks = [match.span() for match in _BREAK.finditer(text)]
        joined = _BREAK.sub("", text)
        removed = list(accumulate((end - start for start, end in breaks), initial=0))
        places = [start - gone for (start, _), gone in zip(breaks, removed, strict=False)]
        found = []
        for match in self._pattern.finditer(joined):
            first, last = (bisect_right(places, at) for at in (match.start(), match.end() - 1))
            if first != last:
                found.append((match.start() + removed[first], match.end() + removed[last]))
        return found


def forms_of(secret: str) -> Iterator[str]:
    """Every spelling of it."""
    yield secret
    yield secret[::-1]
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    data = secret.encode(errors="surrogatepass")
    yield quote(data, safe="")
    yield quote(data)
    yield quote_plus(data)
    yield html.escape(secret)
    for digits in (data.hex(), data.hex().upper()):
        pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        for mark in ("", "%", "\\x", "\\\\x"):
            yield "".join(mark + pair for pair in pairs)
        yield from (between.join(pairs) for between in (" ", ":"))
    yield from _base64_forms(data)
    yield from _base32_forms(data)


def _base64_forms(data: bytes) -> Iterator[str]:
    """The characters that any base64 of a text around the secret must hold, both alphabets."""
    for before in range(3):
        # Only whole 6-bit groups of the secret's own bits are the same whatever stands around it.
        text = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        first = (before * 8 + 5) // 6
        last = (before + len(data)) * 8 // 6
        core = text[first:last]
        if len(core) >= SHORTEST_SECRET:
            yield core
            yield core.translate({ord("+"): "-", ord("/"): "_"})


def _base32_forms(data: bytes) -> Iterator[str]:
    """As of base64; in either case."""
    for before in range(5):
        text = base64.b32encode(b"\0" * before + data).decode().rstrip("=")
        core = text[(before * 8 + 4) // 5 : (before + len(data)) * 8 // 5]
        if len(core) >= SHORTEST_SECRET:
            yield core
            yield core.lower()
