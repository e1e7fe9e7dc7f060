"""Edits as bytes in, bytes out: the fallbacks one by one, and what they must never touch."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness_batch.tools.editing import Edit, Edited, apply_edits
from harness_batch.tools.fallbacks import CHAIN
from harness_batch.tools.matching import Unmatched

CODE = b"""import os


def first(a, b):
    total = a + b
    return total


def second(a, b):
    pass
    if a:
        print("hello  world")
        return b
    return None
"""


def edit(data: bytes, old: str, new: str, *, every: bool = False) -> Edited | Unmatched:
    return apply_edits(data, [Edit(old, new, every)])


def edited(data: bytes, old: str, new: str, *, every: bool = False) -> bytes:
    done = edit(data, old, new, every=every)
    assert isinstance(done, Edited), done
    return done.data


def reason(data: bytes, old: str, new: str, *, every: bool = False) -> str:
    done = edit(data, old, new, every=every)
    assert isinstance(done, Unmatched), done
    return done.reason


# (the way, old text, new text, what then stands in the file in place of what)
FALLBACKS = [
    ("exact", "a + b", "a - b", b"a + b", b"a - b"),
    (
        "trimmed lines",
        'if a:\n    print("hello  world")\n    return b',
        "if a:\n    return b",
        b'    if a:\n        print("hello  world")\n        return b',
        b"    if a:\n        return b",
    ),
    (
        "block anchors",
        "def first(a, b):\n    totals = a+b\n    return total\n",
        "def first(a, b):\n    return a + b\n",
        b"def first(a, b):\n    total = a + b\n    return total\n",
        b"def first(a, b):\n    return a + b\n",
    ),
    (
        "normalised blanks",
        'print("hello world")',
        'print("bye")',
        b'print("hello  world")',
        b'print("bye")',
    ),
    ("unescaped text", r"print(\"hello  world\")", "pass", b'print("hello  world")', b"pass"),
    (
        "context lines",
        (
            "def second(a, b):\n    12345 + 67890\n    if a:\n"
            '        print("hello  world")\n    _____\n    return None\n'
        ),
        "def second(a, b):\n    return None\n",
        CODE[CODE.index(b"def second") :],
        b"def second(a, b):\n    return None\n",
    ),
]


@pytest.mark.parametrize(("way", "old", "new", "was", "becomes"), FALLBACKS)
def test_each_fallback_finds_what_the_ones_before_it_do_not(
    way: str, old: str, new: str, was: bytes, becomes: bytes
) -> None:
    done = edit(CODE, old, new)

    assert isinstance(done, Edited), done
    assert done.data == CODE.replace(was, becomes)
    assert done.ways == (() if way == "exact" else (way,))


def test_the_chain_has_the_documented_order() -> None:
    assert [way for way, _ in CHAIN] == [
        "exact",
        "trimmed lines",
        "block anchors",
        "normalised blanks",
        "flexible indentation",
        "unescaped text",
        "trimmed boundary",
        "context lines",
    ]


def test_flexible_indentation_tells_apart_blocks_that_are_equal_when_trimmed() -> None:
    data = b"  if x:\n    y\nif x:\ny\n"

    done = edit(data, "if x:\n  y\n", "if x:\n  z\n")

    assert isinstance(done, Edited), done
    assert done.ways == ("flexible indentation",)
    assert done.data == b"  if x:\n    z\nif x:\ny\n"


def test_a_trimmed_boundary_tells_apart_what_is_equal_with_normalised_blanks() -> None:
    data = b"x = f(a,  b) + f(a, b)\n"

    done = edit(data, "\n  f(a, b)\n", "\n  f(b)\n")

    assert isinstance(done, Edited), done
    assert done.ways == ("trimmed boundary",)
    assert done.data == b"x = f(a,  b) + f(b)\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "wanted"),
    [
        (b"\tf:\n\t\treturn 1\n", "f:\n\treturn 1", "f:\n\tx\n\ty", b"\tf:\n\t\tx\n\t\ty\n"),
        (b"f:\n\ta\n\t\tb\n", "f:\n  a\n    b", "f:\n    c\n  d", b"f:\n\t\tc\n\td\n"),
        (
            b"  f:\n    a\n",
            "    f:\n      a",
            "    f:\n      a\n\n        b",
            b"  f:\n    a\n\n      b\n",
        ),
        (b"    a\n    b\n", "  a\n  b", "x\n  b", b"  x\n    b\n"),
        (b"  a\n   b\n", " a\n b", " a\n x", b" a\n x\n"),
    ],
)
def test_new_text_takes_the_indentation_of_the_block_it_replaces(
    data: bytes, old: str, new: str, wanted: bytes
) -> None:
    assert edited(data, old, new) == wanted


def test_two_exact_places_are_ambiguous_and_named() -> None:
    said = reason(b"x = 1\ny = 2\nx = 1\n", "x = 1", "x = 3")

    assert "2 places (lines 1, 3)" in said
    assert "replace_all" in said


def test_replace_all_takes_every_place() -> None:
    assert edited(b"x = 1\ny = 2\nx = 1\n", "x = 1", "x = 3", every=True) == (
        b"x = 3\ny = 2\nx = 3\n"
    )


def test_a_loose_match_much_larger_than_the_old_text_is_refused() -> None:
    data = b"start\n" + b"same\n" + b"x" * 5000 + b"\nend\n"

    assert isinstance(edit(data, "start\nsame\ny\nend", "gone"), Unmatched)


@pytest.mark.parametrize("old", ["", "same"])
def test_old_text_that_is_empty_or_equals_the_new_is_refused(old: str) -> None:
    assert reason(b"same\n", old, "same")


def test_an_absent_text_is_answered_with_the_line_that_looks_like_its_first() -> None:
    said = reason(CODE, "def second(a, b):\n    nothing like it", "x")

    assert "line 9" in said


def test_the_old_text_of_a_model_that_copied_line_numbers_is_not_found() -> None:
    assert "line numbers" in reason(CODE, "     4\tdef nowhere(a):", "x")


def test_several_edits_build_on_each_other() -> None:
    done = apply_edits(b"one\ntwo\n", [Edit("one", "three"), Edit("three\ntwo", "four")])

    assert isinstance(done, Edited)
    assert done.data == b"four\n"


def test_of_several_edits_none_is_applied_when_one_fails() -> None:
    done = apply_edits(b"one\ntwo\n", [Edit("one", "three"), Edit("missing", "four")])

    assert isinstance(done, Unmatched)
    assert done.reason.startswith("Edit 2 of 2: ")
    assert "No edit" in done.reason


LINE_ENDS = [
    # (file, old, new, wanted)
    (b"a\r\nb\r\nc\r\n", "b", "B", b"a\r\nB\r\nc\r\n"),
    (b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\nc\r\n"),
    (b"a\r\nb\nc\r\nd\n", "b", "B", b"a\r\nB\nc\r\nd\n"),
    (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nB\nc\nd\n", b"a\r\nB\nc\r\nd\n"),
    (b"a\r\nb\nc\r\nd\n", "b\nc", "b\nx\nc", b"a\r\nb\nx\nc\r\nd\n"),
    (b"a\nb", "b", "b\n", b"a\nb\n"),
    (b"a\nb", "b\n", "c\n", b"a\nc"),
    (b"a\nb", "b", "c", b"a\nc"),
    (b"\xef\xbb\xbfa\nb\n", "a\nb", "c\nd", b"\xef\xbb\xbfc\nd\n"),
    (b"\xef\xbb\xbf  a\n  b\n", "a\nb\n", "c\nd\n", b"\xef\xbb\xbf  c\n  d\n"),
    (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
    (b"a\nb\n", "a\nb", "a\r\nb", b"a\r\nb\n"),
    (b"a\r\nb\r\n", "a\nb", "c\r\nd", b"c\r\nd\r\n"),
    (b"a\r\nb\r\n", "\nb", "\nc", b"a\r\nc\r\n"),
    (b"a\r\nb\r\n", "a\nb", "ab", b"ab\r\n"),
    (b"one line, no end", "line", "x\ny", b"one x\ny, no end"),
    (b"\xff\xfe raw \x80\nold\n\xc3\x28\n", "old", "new", b"\xff\xfe raw \x80\nnew\n\xc3\x28\n"),
    (b"", "", "new\n", b"new\n"),
]


@pytest.mark.parametrize(("data", "old", "new", "wanted"), LINE_ENDS)
def test_line_ends_marks_and_odd_bytes_stay(data: bytes, old: str, new: str, wanted: bytes) -> None:
    assert edited(data, old, new) == wanted


@pytest.mark.parametrize("text", ["\ud800", "a\udc80"])
def test_a_lone_surrogate_never_becomes_a_byte(text: str) -> None:
    assert "surrogate" in reason(b"a\n", "a", text)


around = st.binary(max_size=60).map(lambda raw: raw.replace(b"<", b"").replace(b">", b""))
ends = st.sampled_from([b"\n", b"\r\n"])
plain = st.text("ab \t\x0b\x85\u2028\u00e9\u6f22\U0001f600", max_size=12)


@given(before=around, after=around, end=ends, new=plain)
def test_an_edit_changes_only_the_bytes_it_names(
    before: bytes, after: bytes, end: bytes, new: str
) -> None:
    assume(not before.startswith(b"\xef\xbb\xbf"))
    data = before + b"<old" + end + b"text>" + after

    assert edited(data, "<old\ntext>", f"<{new}\nnew>") == (
        before + b"<" + new.encode() + end + b"new>" + after
    )


@given(
    lines=st.lists(st.tuples(plain, ends), min_size=3, max_size=12),
    at=st.integers(min_value=0),
    data=st.data(),
)
def test_in_mixed_line_ends_an_edit_of_one_line_changes_one_line(
    lines: list[tuple[str, bytes]], at: int, data: st.DataObject
) -> None:
    marked = [(f"<{number}>{line}", end) for number, (line, end) in enumerate(lines)]
    at %= len(marked)
    first = data.draw(st.integers(0, at))
    last = data.draw(st.integers(at, len(marked) - 1))
    whole = b"".join(line.encode() + end for line, end in marked)
    old = "\n".join(line for line, _ in marked[first : last + 1])
    new = "\n".join(
        "changed" if number == at else line
        for number, (line, _) in enumerate(marked)
        if first <= number <= last
    )

    wanted = b"".join(
        (b"changed" if number == at else line.encode()) + end
        for number, (line, end) in enumerate(marked)
    )
    assert edited(whole, old, new) == wanted


@given(data=st.binary(max_size=300), old=st.text(max_size=20), new=st.text(max_size=20))
def test_any_edit_of_any_bytes_is_an_edit_or_a_reason(data: bytes, old: str, new: str) -> None:
    done = edit(data, old, new)

    assert isinstance(done, Edited | Unmatched)


@pytest.mark.parametrize(
    ("data", "old"),
    [
        (b"a\n" * 100_000, "a\n" * 1999 + "b\n"),
        (b"  x\n" * 100_000, "x\n" * 1999 + " b\n"),
        (b"a " * 500_000, "a " * 5000 + "b"),
        (b"s\n" + (b"a" * 2000 + b"\n") * 400 + b"e\n", "s\n" + ("a" * 1999 + "b\n") * 400 + "e\n"),
        ((b"s\n" + b"m\n" * 5 + b"e\n") * 20_000, "s\n" + "q\n" * 5 + "e\n"),
    ],
)
def test_a_hostile_file_does_not_make_looking_slow(data: bytes, old: str) -> None:
    assert isinstance(edit(data, old, "never"), Unmatched | Edited)
