"""Resources: a hostile model that floods, forks, hides, waits and fills; and its neighbour."""

import os
from pathlib import Path

import pytest

from functional_cli import Ran, carry_out
from security_bench import bash, hostile, told, write
from wire import Call

MARK = f"hb-left-{os.getpid()}-{os.urandom(4).hex()}"
"""Stands in the arguments of every process that should not outlive its command."""
SLEEP = f"bash -c 'trap \"\" TERM INT HUP; exec -a {MARK} sleep 300'"
DAEMONS = (
    f"setsid {SLEEP} & nohup {SLEEP} >/dev/null 2>&1 & ( ( setsid {SLEEP} & ) & ); "
    f"coproc {SLEEP}; disown -a; echo left"
)
CHASE = """python3 -c "
import os, sys
if os.fork() == 0:
    while True:
        if os.fork(): os._exit(0)
" """
STOPS = f"{SLEEP} & kill -STOP $!; kill -STOP $$"
FLOOD = "yes $(head -c 2000 /dev/zero | tr '\\0' y) | head -c 20000000"
LINE = "head -c 3000000 /dev/zero | tr '\\0' x"
EATS = "python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 28))'"
SPARSE = "truncate -s 20G sparse; ls -s sparse"
MANY = "python3 -c \"for n in range(5000): open(f'f{n}', 'w')\"; rm -f f[0-9]*"
GLOB = Call("glob", {"pattern": "*/" * 40 + "{a,b}" * 12 + "*"})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [
        hostile("daemons", bash(DAEMONS), bash(CHASE), bash(STOPS, timeout=1)),
        hostile("floods", bash(FLOOD), bash(LINE)),
        hostile("eats", bash(f"ulimit -v 2000000; {EATS}", timeout=60)),
        hostile("fills", bash(SPARSE), bash(MANY), bash("rm sparse")),
        hostile("patterns", GLOB),
        hostile("waits", bash("exec 0<&1; cat; sleep 300", timeout=1), limits={"seconds": 60}),
        hostile("decent", write("shop/more.py"), bash("ls shop"), form="openai-chat"),
    ]
    return carry_out(tmp_path_factory.mktemp("resources"), jobs, "-j", "4")


def survivors() -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if words.startswith(MARK.encode()):
            found.append(words.decode("utf-8", "replace"))
    return found


def test_nothing_outlives_a_command_however_it_hides(ran: Ran) -> None:
    session = ran.session("daemons")

    assert survivors() == []
    assert [tool["status"] for tool in session.tools] == ["completed", "completed", "timeout"]
    assert max(tool["duration_s"] for tool in session.tools) < 30


def test_floods_are_cut_for_the_model_and_on_the_disk(ran: Ran) -> None:
    session = ran.session("floods")

    assert session.tools[0]["output_bytes"] == 20_000_000
    assert all(len(request.body) < 1_000_000 for request in session.requests)
    kept = sum(path.stat().st_size for path in ran.folder.rglob("outputs/*"))
    assert kept < 30_000_000
    assert "is left out" in told(session, 2)


def test_a_command_that_eats_memory_ends_alone(ran: Ran) -> None:
    (call,) = ran.session("eats").tools

    assert call["status"] == "completed"
    assert call["exit_code"] != 0


def test_sparse_gigabytes_and_thousands_of_files_are_no_trouble(ran: Ran) -> None:
    session = ran.session("fills")

    assert session.status == "passed", session.detail
    assert session.patch is None


def test_a_glob_that_explodes_costs_no_time(ran: Ran) -> None:
    (call,) = ran.session("patterns").tools

    assert call["duration_s"] < 30


def test_a_command_that_waits_for_ever_ends_at_its_timeout(ran: Ran) -> None:
    (call,) = ran.session("waits").tools

    assert call["status"] in {"timeout", "completed"}
    assert call["duration_s"] < 20


def test_the_decent_neighbour_passes(ran: Ran) -> None:
    assert ran.session("decent").status == "passed"
    assert ran.session("decent").patch is not None
    assert ran.exit_code in (0, 1)
