"""Cases that users of such tools reported, each as the kind of fault that it is."""

import pytest

from functional_cli import Ran, carry_out
from security_bench import bash, hostile, read, told, write
from wire import Call

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
FILES = {
    "mixed.txt": "one\r\ntwo\nthree\r\nfour\r\n",
    "bom.py": "\ufeffX = 1\n",
    ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    "big.bin": POINTER,
}
NARROW = {"read": "allow", "bash": {"ls *": "allow"}}
KEEPS_PRINTING = "(while :; do echo still here; sleep 0.2; done) & echo started"


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit", {"file_path": path, "old_string": old, "new_string": new})


def holds(name: str, command: str) -> list[dict[str, str]]:
    return [{"name": name, "run": command}]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [
        hostile(
            "mixed-verdicts",
            Call("deploy", {"now": True}),
            Call("read", {"file_path": "/etc/hostname"}),
            bash("ls | rm -rf x"),
            permissions=NARROW,
        ),
        hostile("gives-up", write("a.py"), permissions=NARROW, expect={"patch": "required"}),
        hostile("keeps-printing", bash(KEEPS_PRINTING)),
        hostile(
            "line-ends",
            read("mixed.txt"),
            edit("mixed.txt", "three\nfour", "three\nFOUR"),
            checks=holds(
                "bytes", "printf 'one\\r\\ntwo\\nthree\\r\\nFOUR\\r\\n' | cmp - mixed.txt"
            ),
        ),
        hostile(
            "byte-order-mark",
            read("bom.py"),
            edit("bom.py", "X = 1", "X = 2"),
            checks=holds("bytes", "printf '\\357\\273\\277X = 2\\n' | cmp - bom.py"),
        ),
        hostile(
            "no-identity",
            bash("echo 1 > new.txt && git add new.txt && git commit -qm mine && git log -1"),
        ),
        hostile(
            "large-files",
            bash("git status --porcelain; cat big.bin; echo x > small.txt"),
            checks=holds("pointer", "git diff --quiet HEAD -- big.bin"),
        ),
        hostile("waits-for-input", bash("cat; read x; tty; git commit --allow-empty; true")),
        hostile("honest", write("shop/more.py"), permissions={"edit": "allow"}),
    ]
    return carry_out(tmp_path_factory.mktemp("cases"), jobs, files=FILES)


def test_an_undeclared_tool_a_path_outside_and_a_mixed_pipe_are_three_quick_denials(
    ran: Ran,
) -> None:
    session = ran.session("mixed-verdicts")

    assert [tool["status"] for tool in session.tools] == ["error", "denied", "denied"]
    assert sum(tool["duration_s"] for tool in session.tools) < 1
    assert session.row["finished_at"] is not None


def test_all_calls_denied_and_giving_up_is_no_success_where_a_patch_is_expected(ran: Ran) -> None:
    session = ran.session("gives-up")

    assert (session.status, session.reason) == ("failed", "expect:patch")


def test_a_background_child_that_prints_on_does_not_hold_the_tool(ran: Ran) -> None:
    session = ran.session("keeps-printing")

    assert session.tools[0]["duration_s"] < 10, "it would print for ever"
    assert "started" in told(session, 1)


@pytest.mark.parametrize("name", ["line-ends", "byte-order-mark", "large-files"])
def test_an_edit_changes_the_bytes_that_it_names_and_no_others(ran: Ran, name: str) -> None:
    session = ran.session(name)

    assert session.status == "passed", session.detail
    assert session.patches[0]["files"] == 1


def test_without_a_git_identity_a_commit_is_the_sessions(ran: Ran) -> None:
    session = ran.session("no-identity")

    assert session.tools[0]["exit_code"] == 0, told(session, 1)
    assert session.patch is not None


def test_nothing_waits_for_input_a_terminal_or_an_editor(ran: Ran) -> None:
    session = ran.session("waits-for-input")

    assert session.tools[0]["status"] == "completed"
    assert session.tools[0]["duration_s"] < 10
    assert "not a tty" in told(session, 1)


def test_what_the_others_do_spoils_no_session(ran: Ran) -> None:
    assert ran.session("honest").patch is not None
    assert ran.exit_code == 1
