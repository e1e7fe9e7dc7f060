"""The end of a JSON object, told piece by piece."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.models.braces import ObjectText

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\{}[], \n') | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\{}'), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text('"\\{}[]'), VALUES, max_size=3), st.data())
def test_an_object_is_whole_at_its_last_character_and_not_before(
    value: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(value)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=5)))
    found = ObjectText()
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        assert not found.is_whole or begin == len(text)
        found.pieces.append(text[begin:end])
    assert found.is_whole
    assert str(found) == text


@pytest.mark.parametrize(
    "pieces", [[""], ["[]"], ["{} x"], ["{}", "{}"], ["{}{}"], ['{"a": "}'], ["x{}"]]
)
def test_what_is_no_single_object_is_never_whole(pieces: list[str]) -> None:
    found = ObjectText()
    for piece in pieces[:-1]:
        found.pieces.append(piece)
        assert found.is_whole == (str(found) == "{}")
    found.pieces.append(pieces[-1])
    assert not found.is_whole


def test_a_megabyte_in_many_pieces_is_looked_at_once() -> None:
    found = ObjectText()
    found.pieces.append('{"a": "')
    began = time.process_time()
    for _ in range(50_000):
        found.pieces.append("x" * 20)
        assert not found.is_whole
    found.pieces.append('"}')
    assert found.is_whole
    assert time.process_time() - began < 5
