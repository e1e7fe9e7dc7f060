"""Secrets that must not reach a file."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch import events, messages
from harness_batch.codec import encode
from harness_batch.events import Event, Payload
from harness_batch.store.masking import GATHERED, Mask, mapped
from harness_batch.store.spellings import MASKED
from store_events import payloads

SECRET = 'sk-"a+b/ü\\n'
MASK = Mask((SECRET, "short", "plain-secret-1"))


@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        SECRET[::-1],
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(SECRET)[1:-1])[1:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        SECRET.encode().hex(" "),
        SECRET.encode().hex(":"),
        html.escape(SECRET),
        "".join(f"%{byte:02X}" for byte in SECRET.encode()),
        "".join(f"\\x{byte:02x}" for byte in SECRET.encode()),
    ],
)
def test_each_spelling_is_replaced(spelling: str) -> None:
    assert MASK(f"a {spelling} b") == f"a {MASKED} b"


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_base64_is_found_at_any_place_of_a_text(before: bytes, after: bytes) -> None:
    data = before + b"plain-secret-1" + after
    assert MASKED in MASK(base64.b64encode(data).decode())
    assert MASKED in MASK(base64.urlsafe_b64encode(data).decode())


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_base32_is_found_at_any_place_of_a_text(before: bytes, after: bytes) -> None:
    text = base64.b32encode(before + b"plain-secret-1" + after).decode()
    assert MASKED in MASK(text)
    assert MASKED in MASK(text.lower())


@settings(max_examples=15, deadline=None)
@given(st.binary(max_size=99), st.integers(-20, 5))
def test_a_file_written_in_pieces_is_masked_like_one_written_at_once(
    around: bytes, at: int
) -> None:
    size = 4096
    data = b"." * (GATHERED + at) + b"plain-secret-1" + around + b"\n" * 500 + b"," * GATHERED
    data += base64.b64encode(b"plain-secret-1") + around
    stream = MASK.in_stream()
    pieces = [stream.let(data[at : at + size]) for at in range(0, len(data), size)]
    assert b"".join([*pieces, stream.rest()]) == MASK.in_bytes(data)


def test_a_file_that_is_cut_ends_before_what_may_be_a_secret() -> None:
    stream = MASK.in_stream()
    assert stream.let(b"plain-secret-1 and plain-secret-") == b""
    assert stream.cut() == b"[masked] and "


LONG = "".join(f"key-{n:02}." for n in range(16))


@pytest.mark.parametrize("between", ["\n", "\r\n", "\\n", "\\r\\n"])
@pytest.mark.parametrize(
    ("encoded", "width"),
    [(lambda data: base64.b64encode(data).decode(), 76), (lambda data: data.hex(), 60)],
    ids=["base64", "xxd"],
)
def test_a_secret_broken_over_lines_is_found(
    encoded: Callable[[bytes], str], width: int, between: str
) -> None:
    text = encoded(f"before all of it {LONG} and after".encode())
    told = between.join(text[at : at + width] for at in range(0, len(text), width))
    mask = Mask((LONG,))
    core = encoded(f"before all of it {LONG}".encode())[30:-4]
    for said in (mask(told), mask.in_bytes(told.encode()).decode()):
        assert MASKED in said
        rest = "".join(said.split(between))
        assert not any(core[at : at + 8] in rest for at in range(len(core) - 8))
    assert mask.finds(told.encode())


def test_a_secret_broken_over_lines_is_not_let_out_of_a_stream() -> None:
    text = base64.b64encode(f"key: {LONG}".encode()).decode()
    told = f"{text[:76]}\n{text[76:152]}\n{text[152:]}\n"
    mask, out, held = Mask((LONG,)), "", ""
    for char in told:
        let, held = mask.split(held + char)
        out += let
    assert (out + mask(held)).splitlines()[0].endswith(MASKED)
    assert text[20:28] not in out
    assert text[100:108] not in out


def test_line_breaks_beside_a_secret_stay() -> None:
    assert MASK(f"a\n{SECRET}\nb\r\n") == f"a\n{MASKED}\nb\r\n"
    assert MASK.in_bytes(b"\xff\nplain-secret-1\n\xfe") == b"\xff\n" + MASKED.encode() + b"\n\xfe"


def test_a_short_value_is_left_alone_and_a_text_without_secret_is_the_same_object() -> None:
    text = "short texts stay"
    assert MASK(text) is text


def test_bytes_that_are_no_text_are_masked_too() -> None:
    assert MASK.in_bytes(b"\xff\0plain-secret-1\xff") == b"\xff\0" + MASKED.encode() + b"\xff"
    assert MASK.finds(b"\xffplain-secret-1")
    assert not MASK.finds(b"\xffplain-secret-")


def test_no_secrets_is_no_mask() -> None:
    nothing = Mask(())
    assert nothing("text") == "text"
    assert nothing.in_bytes(b"data") == b"data"
    assert nothing.split("text") == ("text", "")


def test_an_end_that_may_become_a_secret_is_known() -> None:
    assert MASK.split("say plain-sec") == ("say ", "plain-sec")
    assert MASK.split("say plain-secret-1!") == (f"say {MASKED}!", "")


def test_a_secret_that_begins_a_longer_one_waits_for_it() -> None:
    mask = Mask(("secret-1", "secret-1-and-more"))
    assert mask.split("my secret-1") == ("my ", "secret-1")
    assert mask.split("secret-1-and-more") == (MASKED, "")


@given(st.lists(st.text(alphabet="plain-secrt1 ", min_size=1, max_size=6), max_size=6))
def test_a_secret_cut_anywhere_is_never_let_out(around: list[str]) -> None:
    text = "".join([*around, "plain-secret-1", *around])
    held, out = "", ""
    for character in text:
        free, held = MASK.split(held + character)
        out += free
    out += MASK(held)
    assert "plain-secret-1" not in out
    assert out == MASK(text)


@given(payloads)
def test_changing_no_text_changes_no_payload(payload: Payload) -> None:
    assert mapped(payload, lambda text: text) == payload


def test_statuses_and_names_of_keys_are_not_mistaken_for_secrets() -> None:
    mask = Mask(("session", "stop_it", "warning", "message_id"))
    payload = events.Notice("warning", "a warning of the session")
    assert mapped(payload, mask) == events.Notice("warning", f"a {MASKED} of the {MASKED}")


def test_texts_inside_json_are_masked_with_their_keys() -> None:
    state = messages.Running(input={"plain-secret-1": ["plain-secret-1", {"a": "plain-secret-1"}]})
    part = messages.Part(
        id="p",
        message_id="m",
        session_id="s",
        idx=0,
        body=messages.ToolUse(call_id="c", name="bash", state=state),
    )
    masked = mapped(events.PartUpdated(part), MASK)
    assert b"plain-secret-1" not in encode(Event("r", "s", 1, "t", masked))
    assert b"prt" not in encode(Event("r", "s", 1, "t", masked))
