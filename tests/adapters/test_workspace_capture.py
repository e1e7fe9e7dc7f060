"""The patch: exact to the byte, `git am`-able, and nothing an agent leaves behind runs."""

import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.policy import Policy
from harness_batch.workspace import changes
from harness_batch.workspace.patch import Captured
from harness_batch.workspace.worktree import Workspace, open_workspace
from workspace_repos import COMMIT, WORKTREE, applied, committed, git, opened, tree_of, write


@asynccontextmanager
async def working_on(top: Path) -> AsyncIterator[Workspace]:
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=top.parent / "run" / "session"
    ) as workspace:
        yield workspace


async def change(workspace: Workspace) -> Captured:
    captured = await workspace.capture(COMMIT)
    assert captured is not None
    return captured


async def test_all_kinds_of_change_round_trip_through_git_am(tmp_path: Path) -> None:
    top = committed(
        tmp_path / "r",
        {
            "modes": "#!/bin/sh\n",
            "to-link": "text\n",
            "to-folder": "text\n",
            "folder/inside": "1\n",
            "renamed": "same\n" * 20,
            "crlf.txt": "a\r\nb\r\nc\r\n",
            "mixed.txt": "a\r\nb\nc\r\nd\n",
            "bom.txt": b"\xef\xbb\xbfa\n",
            "binary": bytes(range(256)) * 40,
            "no-newline": "last",
            "gone": "1\n",
            "-rf": "x\n",
        },
    )
    (top / "linked").symlink_to("gone")
    committed(top, {})
    async with working_on(top) as workspace:
        root = workspace.root
        (root / "modes").chmod(0o755)
        for name in ("to-link", "to-folder", "gone", "linked", "folder/inside"):
            (root / name).unlink()
        (root / "to-link").symlink_to("modes")
        (root / "folder").rmdir()
        (root / "folder").symlink_to("to-folder")
        (root / "renamed").rename(root / "new name")
        write(
            root,
            {
                "to-folder/inside": "2\n",
                "crlf.txt": "a\r\nB\r\nc\r\n",
                "mixed.txt": "a\r\nB\nc\r\nd\r\n",
                "bom.txt": b"\xef\xbb\xbfb\n",
                "binary": bytes(range(256)) * 40 + b"more",
                "no-newline": "last\nand",
                "-rf": "y\n",
                "--help": "",
                ":(top)*.py": "magic\n",
                'new\nline\ttab"quote\\': "odd\n",
                " blank ": "b\n",
                "late-nul": b"x" * 9000 + b"\0\n" + b"y\n",
                "lone-cr": b"a\rb\r",
                "From mail": "From a@b Mon Sep 17 00:00:00 2001\n---\ndiff --git a/x b/x\n-- \n",
                os.fsdecode(b"\xff\xfe.bin"): b"\xff\n",
                "dash": "-- \n--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
            },
        )
        expected = tree_of(root)
        captured = await change(workspace)
    assert captured.applies
    assert applied(top, tmp_path / "clone", captured.patch) == expected
    assert git(tmp_path / "clone", "log", "-1", "--format=%an %ae %aI %s") == (
        "harness-batch harness-batch@users.noreply.localhost 2026-01-02T03:04:05+00:00 "
        "What the agent did"
    )
    git(tmp_path / "clone", "checkout", "-q", "HEAD^")
    git(tmp_path / "clone", "apply", "--index", stdin=captured.patch)
    assert tree_of(tmp_path / "clone") == expected


async def test_the_numbers_are_those_of_the_patch(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n2\n3\n", "b": "x\n", "c": b"\0"})
    async with working_on(top) as workspace:
        write(workspace.root, {"a": "1\n3\n4\n5\n", "c": b"\0\1"})
        (workspace.root / "b").unlink()
        captured = await change(workspace)
        again = await change(workspace)
    assert (captured.added, captured.removed) == (2, 2)
    assert [(e.status, e.path, e.old_mode, e.new_mode) for e in captured.entries] == [
        ("M", "a", 0o100644, 0o100644),
        ("D", "b", 0o100644, 0),
        ("M", "c", 0o100644, 0o100644),
    ]
    assert captured == again  # same date, same bytes
    expected = git(top, "patch-id", "--stable", stdin=captured.patch).split()[0]
    assert captured.patch_id == expected


async def test_what_is_ignored_or_the_runners_never_enters(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {".gitignore": "*.o\n/build/\n", "src/x.c": "1"})
    (top / ".git/info").mkdir(exist_ok=True)
    (top / ".git/info/exclude").write_text("local-only\n")
    async with working_on(top) as workspace:
        ignored = [
            *("x.o", "build/a", "local-only", "src/__pycache__/x.pyc", ".pytest_cache/v"),
            *(".mypy_cache/a", ".ruff_cache/a", "web/node_modules/m/index.js", ".venv/bin/python"),
            *(".harness/runs/r/events.jsonl", ".harness/history.duckdb", ".harness/.gitignore"),
        ]
        write(workspace.root, dict.fromkeys(ignored, "x"))
        assert await workspace.capture(COMMIT) is None
        write(workspace.root, {"web/.gitignore": "!node_modules\n", "src/.gitignore": "!*\n"})
        write(workspace.root, {".harness/agents/mine.md": "x", "src/build/kept": "x"})
        captured = await change(workspace)
    assert captured.paths == (
        *(".harness/agents/mine.md", "src/.gitignore", "src/build/kept", "web/.gitignore"),
    )


async def test_pipes_sockets_and_folders_are_no_content(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n", "b": "1\n"})
    async with working_on(top) as workspace:
        os.mkfifo(workspace.root / "pipe")
        (workspace.root / "a").unlink()
        os.mkfifo(workspace.root / "a")
        (workspace.root / "empty/empty").mkdir(parents=True)
        captured = await change(workspace)
    assert [(e.status, e.path) for e in captured.entries] == [("D", "a")]


async def test_repositories_made_inside_are_captured_as_files(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {".gitignore": "*.o\n", "plain": "1\n", "pkg/m.py": "1\n"})
    async with working_on(top) as workspace:
        root = workspace.root
        committed(root / "sub", {"n.txt": "n\n", "x.o": "o", "sub-only.log": "l"})
        write(root, {"sub/.gitignore": "*.log\n"})
        committed(root / "sub/deep", {"q": "q\n", ":odd*": "o\n"})
        (root / "unborn").mkdir()
        git(root / "unborn", "init", "-q")
        write(root, {"unborn/u": "u\n"})
        (root / "plain").unlink()
        committed(root / "plain", {"p": "p\n"})
        committed(root / "pkg", {"m.py": "2\n"})
        (root / "file").mkdir()
        (root / "file/.git").write_text(f"gitdir: {top / '.git'}\n")
        write(root, {"file/f": "f\n"})
        captured = await change(workspace)
    assert captured.paths == (
        *("file/f", "pkg/m.py", "plain", "plain/p", "sub/.gitignore", "sub/deep/:odd*"),
        *("sub/deep/q", "sub/n.txt", "unborn/u"),
    )
    assert not any(0o160000 in (entry.old_mode, entry.new_mode) for entry in captured.entries)
    assert captured.applies


async def test_attributes_neither_corrupt_nor_hide_the_change(tmp_path: Path) -> None:
    attributes = (
        "*.id ident\n*.win eol=crlf\n*.auto text=auto\nhidden -diff\n"
        "*.u16 working-tree-encoding=UTF-16\n"
    )
    top = committed(
        tmp_path / "r",
        {
            ".gitattributes": attributes,
            "x.id": "$Id$\n1\n",
            "x.win": "a\nb\n",
            "x.auto": "a\n",
            "hidden": "1\n",
        },
    )
    write(top, {"x.u16": "text\n".encode("utf-16")})
    committed(top, {})
    async with working_on(top) as workspace:
        assert await workspace.capture(COMMIT) is None
        root = workspace.root
        assert (root / "x.win").read_bytes() == b"a\r\nb\r\n"  # as any checkout has it
        assert (root / "x.id").read_bytes().startswith(b"$Id: ")
        write(root, {"x.id": (root / "x.id").read_bytes() + b"2\n", "x.win": b"a\r\nB\r\n"})
        write(root, {"hidden": "2\n", "x.u16": "text2\n".encode("utf-16")})
        expected = tree_of(root)
        captured = await change(workspace)
    assert b"+2\n" in captured.patch
    assert b"$Id: " not in captured.patch
    assert b"\n-1\n+2\n" in captured.patch
    clone = applied(top, tmp_path / "clone", captured.patch)
    kind, content = clone.pop("x.id")  # the id itself is of the new content
    assert (kind, content.partition(b"$\n")[2]) == ("file", b"1\n2\n")
    expected.pop("x.id")
    assert clone == expected


def canary(marker: Path) -> str:
    return f"sh -c 'touch {shlex.quote(str(marker))}; cat'"


async def test_nothing_the_agent_planted_runs_when_the_patch_is_taken(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a.txt": "1\n", "b.txt": "1\n"})
    marker = tmp_path / "ran"
    run = canary(marker)
    async with working_on(top) as workspace:
        root = workspace.root
        (root / ".git").unlink()
        git(root, "init", "-q")
        committed(root / "sub", {"n": "n\n"})
        planted = [root / ".git", root / "sub/.git", workspace.private, root.parent / "git"]
        for git_dir in planted:
            with (git_dir / "config").open("a") as config:
                config.write(
                    f'[core]\nfsmonitor = "{run}"\nhooksPath = {root}/hooks\npager = "{run}"\n'
                    f'[filter "evil"]\nclean = "{run}"\nsmudge = "{run}"\nprocess = "{run}"\n'
                    f'required = true\n[diff "evil"]\ntextconv = "{run}"\ncommand = "{run}"\n'
                    f'[diff]\nexternal = "{run}"\n[merge "evil"]\ndriver = "{run}"\n'
                    f'[gpg]\nprogram = "{run}"\n[commit]\ngpgSign = true\n'
                )
            (git_dir / "info").mkdir(exist_ok=True)
            (git_dir / "info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
            (git_dir / "hooks").mkdir(exist_ok=True)
        hooks = [*(p / "hooks" for p in planted), root / "hooks"]
        for folder in hooks:
            folder.mkdir(exist_ok=True)
            for name in ("post-index-change", "pre-commit", "post-commit", "fsmonitor-watchman"):
                (folder / name).write_text(f"#!/bin/sh\ntouch {shlex.quote(str(marker))}\n")
                (folder / name).chmod(0o755)
        write(root, {".gitattributes": "* filter=evil diff=evil merge=evil\n", "a.txt": "2\n"})
        captured = await change(workspace)
        assert not marker.exists()
        await trio.run_process(["git", "status"], cwd=root, check=False, capture_stdout=True)
        assert marker.exists(), "the canaries were dead all along"
    assert {"a.txt", ".gitattributes", "sub/n"} <= set(captured.paths)
    assert captured.applies


async def test_a_vanished_tree_is_a_deletion_and_a_replaced_one_an_error(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n"})
    async with working_on(top) as workspace:
        (workspace.root / "a").unlink()
        (workspace.root / ".git").unlink()
        captured = await change(workspace)
        assert captured.entries[0].status == "D"
        workspace.root.rmdir()
        workspace.root.symlink_to("/etc")
        with pytest.raises(Exception, match="replaced"):
            await workspace.capture(COMMIT)
        workspace.root.unlink()


async def test_what_is_too_big_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_PATHS", 3)
    top = committed(tmp_path / "r", {"a": "1\n"})
    async with working_on(top) as workspace:
        with (workspace.root / "0-sparse").open("wb") as file:
            file.truncate(1 << 40)
        captured = await change(workspace)
        assert captured.patch == b""
        assert captured.entries[0].problem is not None
        write(workspace.root, {f"f{n}": "x" for n in range(9)})
        captured = await change(workspace)
    assert [e.path for e in captured.entries if e.problem is None] == ["f0", "f1", "f2"]
    assert [e.path for e in captured.entries if e.problem] == ["0-sparse", "f3"]


async def test_setuid_files_and_links_are_told(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n"})
    async with working_on(top) as workspace:
        write(workspace.root, {"s": "x"})
        (workspace.root / "s").chmod(0o4755)
        (workspace.root / "l").symlink_to("/etc/passwd")
        captured = await change(workspace)
    assert [(e.path, e.special_bits, e.link_target) for e in captured.entries] == [
        ("l", False, "/etc/passwd"),
        ("s", True, None),
    ]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "\n\n",
        "Ümlaut and emoji 🎉 in a subject that is far too long to stand on one line " * 3,
        "subject\n\nFrom: Eve <eve@example.org>\nDate: yesterday\nSubject: other\n\nbody",
        "subject\n\ndiff --git a/e b/e\nnew file mode 100644\n--- a/e\n+++ b/e\n@@ -0,0 +1 @@\n+e",
        f"subject\n\nFrom {'01' * 20} Mon Sep 17 00:00:00 2001\nSubject: two\n\n---\nIndex: x\nend",
        "esc \x1b[31m nul \0 cr \r\n\a\n\nlone \ud800 surrogate\n>From x\nCo-authored-by: A <a@b>",
    ],
)
async def test_no_message_can_break_or_forge_the_patch(tmp_path: Path, message: str) -> None:
    top = committed(tmp_path / "r", {"a": "1\n"})
    async with working_on(top) as workspace:
        write(workspace.root, {"a": "2\n"})
        captured = await workspace.capture(evolve(COMMIT, message=message))
    assert captured is not None
    tree = applied(top, tmp_path / "clone", captured.patch)
    assert tree == {"a": ("file", b"2\n")}
    clone = tmp_path / "clone"
    assert git(clone, "rev-list", "--count", "HEAD") == "2"
    assert git(clone, "log", "-1", "--format=%an %ad", "--date=unix") == "harness-batch 1767323045"
    told = git(clone, "log", "-1", "--format=%B").split()
    assert told[-1:] == message.split()[-1:] or not message.strip()


async def test_the_sandbox_can_serve_every_git_call(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\r\n"})
    async with working_on(top) as workspace:
        write(workspace.root, {"a": "2\r\n", "b": "x"})
        committed(workspace.root / "sub", {"n": "n"})
        env = {"PATH": os.environ["PATH"]}
        async with open_launcher(Policy(env=env, cwd=workspace.root)) as launcher:
            captured = await workspace.capture(COMMIT, launcher)
        assert captured == await workspace.capture(COMMIT)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
async def test_files_and_folders_closed_to_their_owner_are_captured(tmp_path: Path) -> None:
    roots = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "runner")]
    script = tmp_path / "as_nobody.py"
    script.write_text(
        "import os, sys, tempfile, trio\n"
        "from pathlib import Path\n"
        f"sys.path[:0] = {roots}\n"
        "from workspace_repos import *\n"
        "from harness_batch.workspace.worktree import open_workspace\n"
        "os.chdir('/'); os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "async def main(place):\n"
        "    repository, base = opened(committed(place / 'r', {'d/a': '1', 'd/b': '1'}))\n"
        "    async with open_workspace(repository=repository, base_sha=base, wish=WORKTREE,\n"
        "                              folder=place / 'run' / 's') as w:\n"
        "        write(w.root, {'d/a': '2', 'new/x': '1'})\n"
        "        for p in ('d/a', 'new/x', 'd', 'new'): (w.root / p).chmod(0)\n"
        "        print((await w.capture(COMMIT)).paths)\n"
        "        for p in ('d', 'new'): (w.root / p).chmod(0)\n"
        "    print((place / 'run' / 's').exists())\n"
        "with tempfile.TemporaryDirectory() as place: trio.run(main, Path(place))\n"
    )
    done = await trio.run_process([sys.executable, script], capture_stdout=True)
    assert done.stdout == b"('d/a', 'new/x')\nFalse\n"


NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8
)
PATHS = (
    st.lists(NAMES, min_size=1, max_size=3)
    .filter(
        lambda parts: not any(part.casefold().strip(". ") in ("", "git", "git~1") for part in parts)
    )
    .filter(lambda parts: all(len(part.encode()) < 200 for part in parts))
    .map("/".join)
)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"a\n", b"b\r\n", b"\r", b"c", b"\0"])).map(b"".join),
)
FILES = st.dictionaries(PATHS, CONTENTS, max_size=5)


@settings(max_examples=6, deadline=None)
@given(before=FILES, after=FILES)
def test_a_patch_applied_to_its_base_gives_the_tree(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    async def check(place: Path) -> None:
        top = committed(place / "r", fitting(before))
        async with working_on(top) as workspace:
            for path in [*workspace.root.rglob("*")]:
                if path.is_file() and path.name != ".git":
                    path.unlink()
            write(workspace.root, fitting(after))
            expected = tree_of(workspace.root)
            captured = await workspace.capture(COMMIT)
        if captured is None:
            assert tree_of(top) == expected
        else:
            assert captured.applies
            assert applied(top, place / "clone", captured.patch) == expected

    with TemporaryDirectory() as folder:
        trio.run(check, Path(folder))


def fitting(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without those that need a file to be a folder, or say what git ignores or converts."""
    folders = {
        "/".join(path.split("/")[:n]) for path in files for n in range(1, path.count("/") + 1)
    }
    return {p: c for p, c in files.items() if p not in folders and ".git" not in p.casefold()}
