"""The runner as process 1 of a container: no zombies, signals handed on, its exit code."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workspace_processes import started_by

RUNNER = str(Path(__file__).parents[2] / "runner")
NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


def starts() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run((*NAMESPACE, "true"), capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not starts(), reason="this host gives no pid namespace")

ORPHANS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from harness_batch.cli.first_process import stand_by
assert os.getpid() == 1
stand_by()
assert os.getpid() != 1
for _ in range(20):
    if os.fork() == 0:
        if os.fork():
            os._exit(0)
        os._exit(0)
    os.wait()
def zombies():
    states = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            states.append(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[0])
        except OSError:
            pass
    return states.count("Z")
for _ in range(500):
    if not zombies():
        os._exit(7)
    time.sleep(0.01)
os._exit(1)
"""
WAITS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from harness_batch.cli.first_process import stand_by
stand_by()
signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
print("ready", flush=True)
signal.pause()
"""


def test_orphans_are_buried_and_the_exit_code_is_the_childs() -> None:
    done = subprocess.run((*NAMESPACE, sys.executable, "-c", ORPHANS, RUNNER), check=False)
    assert done.returncode == 7


def test_signals_for_the_container_reach_the_runner() -> None:
    argv = (*NAMESPACE, sys.executable, "-c", WAITS, RUNNER)
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (first, *_) = sorted(started_by(process.pid))
        subprocess.run(("kill", f"-{signal.SIGTERM.value}", str(first)), check=True)
        assert process.wait(10) == 9


def test_the_command_line_runs_as_process_1() -> None:
    words = (sys.executable, "-m", "harness_batch", "--version")
    env = {"PYTHONPATH": RUNNER, "PATH": "/usr/bin:/bin"}
    done = subprocess.run((*NAMESPACE, *words), capture_output=True, env=env, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"harness-batch, version ")
