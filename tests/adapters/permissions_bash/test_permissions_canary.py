"""Payloads that really reach a forbidden program under bash: the rules must deny every one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_batch.permissions.judge import Allowed, Denied
from harness_batch.permissions.shell import ShellPlace, asks_of
from permissions_cases import OPEN, PAYLOADS, PLAIN, POLICY

PROGRAMS = (*OPEN, "git", "sh", "bash", "tee", "mktemp")
"""Programs on the PATH of the scripts that are really run, beside the canary."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a canary, a hostile `bin`, and a PATH of harmless programs."""
    root = tmp_path_factory.mktemp("canary") / "work"
    programs = root.parent / "programs"
    (root / "bin").mkdir(parents=True)
    programs.mkdir()
    for name in PROGRAMS:
        target = shutil.which(name)
        if target is not None:
            (programs / name).symlink_to(target)
    canary = f"#!/bin/sh\n: > '{root.parent}/fired'\necho 1\n"
    for place in (programs / "canary", root / "canary", root / "git-canary"):
        place.write_text(canary)
        place.chmod(0o755)
    for name in ("ls", "printenv", "echo"):
        (root / "bin" / name).write_text(canary)
        (root / "bin" / name).chmod(0o755)
    (root / "in").write_text("x\n")
    (root / "big").write_text("".join(f"{n}\n" for n in range(20000)))
    (root / "--checkpoint=1").write_text("")
    (root / "--checkpoint-action=exec=canary").write_text("")
    environment = _environment(root)
    subprocess.run(
        ["git", "init", "-q", "."], cwd=root, env={**environment, "PATH": os.defpath}, check=True
    )
    return root


def _environment(root: Path) -> dict[str, str]:
    return {"PATH": str(root.parent / "programs"), "HOME": str(root.parent), "LC_ALL": "C.UTF-8"}


def fires(script: str, root: Path) -> bool:
    """Runs the script under bash; was the canary reached?"""
    mark = root.parent / "fired"
    mark.unlink(missing_ok=True)
    subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=root,
        env=_environment(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=10,
        check=False,
    )
    return mark.exists()


@pytest.mark.parametrize("script", PAYLOADS)
def test_a_payload_that_reaches_the_canary_is_denied(script: str, workspace: Path) -> None:
    assert fires(script, workspace), "the payload is blunt"
    assert isinstance(POLICY.judge(asks_of(script, ShellPlace(workspace, workspace))), Denied)


NOISE = st.sampled_from(
    (
        *[
            "'",
            '"',
            "\\",
            "\n",
            ";",
            "&",
            "|",
            "(",
            ")",
            "{",
            "}",
            "<",
            ">",
            "$",
            "`",
            "#",
            "!",
            "*",
            "=",
        ],
        *("<<EOF", "\nEOF\n", "\\\n", "$(", "${", "&&", "||", ";;", "2>&1", "$(canary)", "canary"),
        *(" echo ", " ls ", " if ", " then ", " fi ", " do ", " done ", " in ", " time ", " -x "),
        *("EOF", "[[", "]]", "{a,b}", "$x", " sh ", "\ncanary\n"),
    )
)


@st.composite
def spliced(draw: st.DrawFn) -> str:
    """A harmless script with pieces of payloads and punctuation put in."""
    script = draw(st.sampled_from(PLAIN))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(script)))
        length = draw(st.integers(0, 3))
        script = script[:place] + draw(NOISE) + script[place + length :]
    return script + draw(st.sampled_from(["\ncanary\n", "canary", " canary", "", "'\ncanary"]))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(spliced())
def test_whatever_is_allowed_does_not_reach_the_canary(workspace: Path, script: str) -> None:
    verdict = POLICY.judge(asks_of(script, ShellPlace(workspace, workspace)))
    if isinstance(verdict, Allowed):
        assert not fires(script, workspace)


def test_a_new_line_ends_a_command_even_where_the_grammar_reads_on(workspace: Path) -> None:
    # Behind a redirection in a pipeline the grammar takes `sh` for one more argument of grep.
    script = "cat in 2>&1 | grep y 1 | grep y \\;-nh x\nsh < <(echo canary)"
    assert fires(script, workspace)
    assert isinstance(POLICY.judge(asks_of(script, ShellPlace(workspace, workspace))), Denied)
