"""What each mechanism holds against attacks from inside; the canary finds what does not hold."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from harness_batch.errors import SandboxError
from harness_batch.processes import Command, CommandEnd
from harness_batch.sandbox import canary
from harness_batch.sandbox.host import Host, mends, probe_host, probe_more
from harness_batch.sandbox.launcher import ForEach, open_launcher
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Limits, Open, Policy, Through, Treatment
from harness_batch.sandbox.probe import PROPERTIES, REQUIRED, prove
from harness_batch.sandbox.secrets_at import hidden
from harness_batch.sandbox.view import extended, host_view

NOT_HERE = {"read-confined", "egress-allowlist"}
"""Held by another view and another network than the first canary's."""
LACKS: Mapping[Mechanism, set[str]] = {
    "bubblewrap": NOT_HERE,
    "landlock": NOT_HERE | {"metadata-confined", "loopback", "git-file-protected"},
    "plain": set(PROPERTIES) - {"no-survivors"},
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    name: Mechanism = request.param
    if (why := lacking(name)) is not None:
        pytest.skip(f"{name}: {why}")
    return name


@pytest.fixture
def contained(mechanism: Mechanism) -> Mechanism:
    if mechanism == "plain":
        pytest.skip("plain contains nothing")
    return mechanism


async def sh(policy: Policy, mechanism: Mechanism, script: str) -> tuple[CommandEnd, str]:
    output: list[bytes] = []
    command = Command(argv=("sh", "-c", script), cwd=Path(), timeout=20)
    end = await ForEach(policy, mechanism).run(command, output.append)
    return end, b"".join(output).decode()


def policy_of(folder: Path, environ: Mapping[str, str] = os.environ, **more: Treatment) -> Policy:
    """Works in `folder`/work; `more` treats other folders of it."""
    (folder / "work").mkdir(exist_ok=True)
    paths: dict[Path, Treatment] = {**extended(host_view(environ), write=[folder / "work"])}
    paths |= {folder / name: treatment for name, treatment in more.items()}
    env = {"PATH": os.environ["PATH"]}
    return Policy(env=env, cwd=folder / "work", network=Closed(), paths=paths)


async def test_the_canary_finds_what_each_mechanism_holds_and_no_more(
    mechanism: Mechanism, tmp_path: Path
) -> None:
    found = await prove(mechanism, os.environ, tmp_path)
    assert {name for name, prop in found.items() if not prop.holds} == LACKS[mechanism]
    assert all(prop.why for prop in found.values() if not prop.holds)


async def test_the_canary_notices_an_open_network(contained: Mechanism, tmp_path: Path) -> None:
    found = await prove(contained, os.environ, tmp_path, network=Open())
    assert found["net-none"].why == "a command reached a server outside"
    assert found["write-confined"].holds


async def test_a_narrow_view_hides_what_lies_outside(contained: Mechanism, tmp_path: Path) -> None:
    found = await prove(contained, os.environ, tmp_path, view="narrow")
    assert found["read-confined"].holds
    assert found["write-confined"].holds


async def test_the_host_is_judged_by_its_strongest_mechanism(tmp_path: Path) -> None:
    host = await probe_more(await probe_host(os.environ, tmp_path), os.environ, tmp_path)
    strongest = next(name for name in MECHANISMS if lacking(name) is None)
    assert host.mechanism == strongest
    assert set(host.properties) == set(PROPERTIES)
    if strongest == "bubblewrap":
        assert all(prop.holds for prop in host.properties.values())
        assert not tuple(mends(host))


def test_what_is_missing_comes_with_the_reasons_of_stronger_mechanisms() -> None:
    host = Host(mechanism="landlock", properties={}, passed_over={"bubblewrap": "no permissions"})
    assert host.why_not("loopback") == "it was not tried (landlock); bubblewrap: no permissions"


async def test_secrets_of_the_home_cannot_be_read_however_they_are_reached(
    contained: Mechanism, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("s3cret")
    (home / ".netrc").write_text("s3cret")
    (home / "notes").write_text("harmless")
    (home / "link").symlink_to(home / ".netrc")
    policy = policy_of(tmp_path, {**os.environ, "HOME": str(home)}, home="read")
    script = f"cat {home}/.ssh/id {home}/.netrc {home}/link /proc/self/root{home}/.netrc; true"
    _, said = await sh(policy, contained, script)
    assert "s3cret" not in said
    _, said = await sh(policy, contained, f"cat {home}/notes")
    assert said == "harmless"


async def test_a_folder_that_path_names_is_there_although_it_lies_in_a_hidden_one(
    contained: Mechanism, tmp_path: Path
) -> None:
    tool = tmp_path / "toolchain" / "bin" / "greet"
    tool.parent.mkdir(parents=True)
    (tool.parent.parent / "words").write_text("hello")
    tool.write_text('#!/bin/sh\ncat "$(dirname "$0")/../words"\n')
    tool.chmod(0o755)
    policy = policy_of(tmp_path, {**os.environ, "PATH": f"{tool.parent}:/usr/bin:/bin"})
    assert (await sh(policy, contained, str(tool)))[1] == "hello"


async def test_files_the_ci_runner_reads_commands_from_are_hidden(
    contained: Mechanism, tmp_path: Path
) -> None:
    commands = tmp_path / "set_env"
    commands.write_text("")
    environ = {**os.environ, "GITHUB_ENV": str(commands)}
    assert hidden(environ)[commands] == "hidden"
    await sh(policy_of(tmp_path, environ), contained, f"echo X=1 >> {commands}")
    assert commands.read_text() == ""


async def test_what_is_protected_stays_in_a_writable_folder(tmp_path: Path) -> None:
    if (why := lacking("bubblewrap")) is not None:
        pytest.skip(why)
    (tmp_path / "work" / ".git").mkdir(parents=True)
    treated: dict[str, Treatment] = {"work/.git": "protected"}
    policy = policy_of(tmp_path, os.environ, **treated)
    end, _ = await sh(policy, "bubblewrap", "touch free && ! touch .git/x && ! mv .git g")
    assert end.exit_code == 0


async def test_a_command_runs_under_its_limits(mechanism: Mechanism, tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    small = Policy(
        env=policy.env,
        cwd=policy.cwd,
        paths=policy.paths,
        limits=Limits(processes=50, open_files=100, file=4096, data=1 << 30),
    )
    script = "ulimit -c; ulimit -n; ulimit -d; ulimit -v; head -c 100000 /dev/zero > big"
    end, said = await sh(small, mechanism, script)
    assert said.split()[:4] == ["0", "100", str((1 << 30) // 1024), "unlimited"]
    assert end.exit_code != 0
    assert (tmp_path / "work" / "big").stat().st_size == 4096


async def test_a_private_scratch_folder_has_an_end(tmp_path: Path) -> None:
    if (why := lacking("bubblewrap")) is not None:
        pytest.skip(why)
    policy = policy_of(tmp_path)
    limits = Limits(scratch=1 << 20)
    small = Policy(env=policy.env, cwd=policy.cwd, paths=policy.paths, limits=limits)
    end, said = await sh(small, "bubblewrap", "head -c 3000000 /dev/zero > /tmp/big")
    assert end.exit_code != 0
    assert "No space left" in said


async def test_landlock_cannot_let_single_hosts_through_and_says_so(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    through = Policy(
        env=policy.env, cwd=policy.cwd, paths=policy.paths, network=Through(tmp_path / "s")
    )
    with pytest.raises(SandboxError, match="needs bubblewrap"):
        async with open_launcher(through, "landlock"):
            pass


async def test_what_the_host_refuses_the_first_command_is_told(tmp_path: Path) -> None:
    if (why := lacking("bubblewrap")) is not None:
        pytest.skip(why)
    policy = policy_of(tmp_path, gone="write")
    with trio.fail_after(10), pytest.raises(SandboxError, match=r"cannot start the sandbox: bwrap"):
        await sh(policy, "bubblewrap", "true")


def test_every_property_has_an_attack() -> None:
    target = dict.fromkeys(
        ("outside", "token", "unix", "lock", "planted", "hidden", "proxy", "only"), "x"
    )
    attacked = {
        name for name, _, _ in canary.attacks({**target, "tcp": "1", "udp": "1", "victim": "1"})
    }
    assert attacked | {"no-survivors", "loopback", "egress-allowlist"} == set(PROPERTIES)
    assert set(REQUIRED) <= set(PROPERTIES)
