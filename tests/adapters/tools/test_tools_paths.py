"""No path leads out of the workspace unasked, and no race leads out at all."""

import ctypes
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes_tools import Desk, desk, inside_only
from harness_batch.rules import Ask
from harness_batch.tools.beneath import by_kernel, by_steps
from harness_batch.tools.edit import EditTool
from harness_batch.tools.paths import Place, Refused, locate
from harness_batch.tools.protocol import ToolResult
from harness_batch.tools.read import ReadTool
from harness_batch.tools.write import WriteTool

READ, WRITE, EDIT = ReadTool(), WriteTool(), EditTool()
SECRET = "the secret outside"
LIBC = ctypes.CDLL(None)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def at(tmp_path: Path) -> Desk:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    here = desk(tmp_path, inside_only)
    (here.context.root / "src").mkdir()
    (here.context.root / "src" / "a.py").write_text("a = 1\n")
    return here


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/../src/./a.py", "src/a.py"),
        ("new/folder/file.txt", "new/folder/file.txt"),
        (".", "."),
        ("a b/\u00fc.txt", "a b/\u00fc.txt"),
    ],
)
def test_inside_a_path_is_asked_relative_to_the_workspace(at: Desk, path: str, asked: str) -> None:
    assert at.asks(READ, file_path=path) == (Ask("read", asked),)


def test_an_absolute_path_inside_is_asked_like_a_relative_one(at: Desk) -> None:
    path = str(at.context.root / "src" / "a.py")

    assert at.asks(EDIT, file_path=path) == (Ask("edit", "src/a.py"),)


def test_outside_the_absolute_path_is_asked_for_too(at: Desk) -> None:
    outside = at.context.root.parent / "outside" / "secret.txt"

    for path in ("../outside/secret.txt", "src/../../outside/secret.txt", str(outside)):
        assert at.asks(READ, file_path=path) == (
            Ask("read", str(outside)),
            Ask("external_directory", str(outside)),
        )


def test_a_link_is_asked_for_as_what_it_leads_to(at: Desk) -> None:
    root = at.context.root
    (root / "inner").symlink_to("src/a.py")
    (root / "outer").symlink_to("../outside")
    (root / "chain").symlink_to("outer")
    outside = str(root.parent / "outside" / "secret.txt")

    assert at.asks(READ, file_path="inner") == (Ask("read", "src/a.py"),)
    for path in ("outer/secret.txt", "chain/secret.txt", "src/../chain/secret.txt"):
        assert at.asks(READ, file_path=path) == (
            Ask("read", outside),
            Ask("external_directory", outside),
        )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "NUL"),
        ("x" * 5000, "at most 4096"),
        ("a/" * 3000, "at most 4096"),
        ("x" * 300, "255"),
        ("~", "`~` is not expanded"),
        ("~/x", "`~` is not expanded"),
        ("~root/x", "`~` is not expanded"),
        (".git/config", "git's own folder"),
        ("src/.GIT/hooks/x", "git's own folder"),
        ("git~1/config", "git's own folder"),
        (".g\u200cit/config", "git's own folder"),
        ("sub/.git", "git's own folder"),
        ("a\ud800b", "surrogate"),
        ("/proc/self/environ", "/proc"),
        ("/proc/1/../self/environ", "/proc"),
        ("/dev/stdin", "never"),
        ("/sys/kernel", "/sys"),
    ],
)
def test_what_no_rule_could_open_is_refused_with_a_reason(at: Desk, path: str, said: str) -> None:
    for tool in (READ, EDIT, WRITE):
        asked = at.asks(tool, file_path=path)

        assert isinstance(asked, ToolResult)
        assert asked.status == "error"
        assert said in asked.output


def test_a_link_into_git_or_proc_is_refused(at: Desk) -> None:
    root = at.context.root
    (root / ".git").mkdir()
    (root / "g").symlink_to(".git")
    (root / "p").symlink_to("/proc/self/environ")

    for path in ("g/config", "p"):
        assert isinstance(at.asks(READ, file_path=path), ToolResult)


async def test_links_in_a_circle_are_an_error_not_a_hang(at: Desk) -> None:
    root = at.context.root
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    for tool, more in ((READ, {}), (WRITE, {"content": "x"})):
        result = await at.call(tool, file_path="a", **more)
        assert result.status == "error"
        assert "circle" in result.output


async def test_a_place_that_is_not_permitted_when_the_call_runs_is_refused(at: Desk) -> None:
    (at.context.root / "link").symlink_to("../outside/secret.txt")

    result = await READ.run({"file_path": "link"}, at.context, "c")

    assert result.status == "error"
    assert SECRET not in result.output


async def test_external_directory_opens_the_outside(tmp_path: Path) -> None:
    here = desk(tmp_path)
    (tmp_path / "outside.txt").write_text("hello\n")

    result = await here.call(READ, file_path="../outside.txt")

    assert result.status == "completed"
    assert "hello" in result.output


async def test_fifos_and_sockets_are_refused_at_once(at: Desk) -> None:
    root = at.context.root
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for name, kind in (("fifo", "FIFO"), ("socket", "socket")):
            for tool, more in ((READ, {}), (WRITE, {"content": "x"})):
                result = await at.call(tool, file_path=name, **more)
                assert result.status == "error"
                assert kind in result.output


async def test_a_dangling_link_inside_is_written_through(at: Desk) -> None:
    (at.context.root / "link").symlink_to("src/new.py")

    result = await at.call(WRITE, file_path="link", content="x\n")

    assert result.status == "completed"
    assert (at.context.root / "link").is_symlink()
    assert (at.context.root / "src" / "new.py").read_text() == "x\n"


segments = st.sampled_from(
    ["..", ".", "", "src", "in", "out", "loop", "up", "a.py", "secret.txt", "outside", "new"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(segments, min_size=1, max_size=8), absolute=st.booleans())
def test_a_place_is_inside_or_asks_to_leave(at: Desk, parts: Sequence[str], absolute: bool) -> None:
    root = at.context.root
    for name, target in (("in", "src"), ("out", "../outside"), ("loop", "loop"), ("up", "..")):
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    text = ("/" if absolute else "") + "/".join(parts)

    place = locate(text, at.context)

    if isinstance(place, Place):
        real = Path(os.path.realpath(root / text))
        asks = place.asks("read")
        assert place.path == real
        assert any(ask.permission == "external_directory" for ask in asks) == (
            real != root and root not in real.parents
        )
    else:
        assert isinstance(place, Refused)


Opening = Callable[[int, Sequence[str], int], int]


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """`root/name` is a file and a link outside by turns, `root/way` a folder and a link.

    They change places in one step, so that there is always something to fall for.
    """
    stop = threading.Event()
    (root / "way").mkdir()
    (root / "way" / "secret.txt").write_text("harmless")
    (root / "name").write_text("harmless")
    (root / "link").symlink_to("../outside/secret.txt")
    (root / "detour").symlink_to("../outside")

    def swap() -> None:
        while not stop.is_set():
            for one, other in (("name", "link"), ("way", "detour")):
                names = os.fsencode(root / one), os.fsencode(root / other)
                LIBC.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("opening", [by_kernel, by_steps])
def test_a_link_swapped_in_while_opening_is_never_followed(at: Desk, opening: Opening) -> None:
    root = at.context.root
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    seen: set[str] = set()
    try:
        with swapping(root):
            for _ in range(2000):
                for parts in (("name",), ("way", "secret.txt")):
                    try:
                        descriptor = opening(folder, parts, os.O_RDONLY)
                    except OSError as error:
                        assert error.errno in {  # noqa: PT017 - one of several is right
                            errno.ELOOP,
                            errno.ENOENT,
                            errno.ENOTDIR,
                            errno.EAGAIN,
                        }
                        continue
                    with os.fdopen(descriptor, "rb") as file:
                        seen.add(file.read().decode())
    finally:
        os.close(folder)
    assert seen <= {"harmless"}


async def test_reading_and_writing_through_a_swapping_link_never_leave(at: Desk) -> None:
    root = at.context.root
    with swapping(root):
        for _ in range(60):
            for path in ("name", "way/secret.txt"):
                result = await at.call(READ, file_path=path)
                assert SECRET not in result.output
                await at.call(WRITE, file_path=path, content="harmless")
                await at.call(EDIT, file_path=path, old_string="harmless", new_string="harmless ")
    assert (root.parent / "outside" / "secret.txt").read_text() == SECRET
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["secret.txt"]


@pytest.mark.parametrize("parts", [("..", "x"), ("a", "..", "b"), ("/etc", "passwd"), ("", "x")])
def test_the_walk_by_steps_refuses_names_that_are_none(
    tmp_path: Path, parts: Sequence[str]
) -> None:
    folder = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        with pytest.raises(OSError, match="link"):
            by_steps(folder, parts, os.O_RDONLY)
    finally:
        os.close(folder)
