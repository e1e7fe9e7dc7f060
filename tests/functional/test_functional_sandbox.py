"""What a session's commands can and cannot do, through the command line, for real."""

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from functional_cli import MAIN_RECIPE, Job, Ran, carry_out
from harness_batch.sandbox.mechanisms import lacking
from harness_batch.sandbox.policy import Limits
from wire import Reply, Say

DONE = (Reply(Say("Done.")),)
CONNECT = "python3 -c 'import socket, sys; socket.create_connection((\"127.0.0.1\", {port}), 2)'"
PROXIED = """python3 - <<'PY'
import urllib.error, urllib.request
try:
    urllib.request.urlopen("http://blocked.invalid/", timeout=10)
except urllib.error.HTTPError as error:
    assert error.code == 403, error
else:
    raise SystemExit("it was let through")
PY"""
AGAIN = "if [ -e ~/seen ]; then ! mv .git g; else touch ~/seen; false; fi"

needs_bubblewrap = pytest.mark.skipif(
    lacking("bubblewrap") is not None, reason=str(lacking("bubblewrap"))
)
needs_landlock = pytest.mark.skipif(
    lacking("landlock") is not None, reason=str(lacking("landlock"))
)


def recipe(*checks: str, **more: Any) -> dict[str, Any]:
    named = [{"name": f"c{n}", "run": check} for n, check in enumerate(checks)]
    return {**dict.fromkeys(MAIN_RECIPE), "prompt": "Look.", "checks": named, **more}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server that takes every connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def confined(folder: Path, port: int) -> dict[str, Any]:
    connect = CONNECT.format(port=port)
    return recipe(
        "echo x > new && rm new",
        "! touch ../escaped",
        '! touch "$(git rev-parse --git-common-dir)/../private/escaped"',
        f"! cat {folder}/config.json",
        f"! cat {folder}/project/.git/config",
        f"! {connect}",
        'test -z "$(ls -A ~)" && touch ~/mine && touch "$TMPDIR/mine"',
        "git add -A && git commit -q --allow-empty -m mine && git log -1 --format=%s | grep mine",
    )


CASES: Mapping[str, str] = {
    "open": "network: all reaches a server",
    "setup-open": "setup has the network by default",
    "setup-closed": "setup_network: none closes it",
    "hosts": "only the proxy, and that refuses what is not listed",
    "external": "nothing is contained, as the recipe says that something else does",
    "write": "sandbox.write opens one more folder",
    "narrow": "read-confined shows system folders only",
    "reset": "a reset workspace is protected as before",
    "confined": "files, network, secrets, HOME and git",
    "in-place": "the checkout's .git cannot be changed",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, port: int) -> Ran:
    folder = tmp_path_factory.mktemp("sandboxed")
    connect = CONNECT.format(port=port)
    closed = {"setup": [f"! {connect}"], "setup_network": "none"}
    retry = {"max_retries": 1, "reset": True, "checks": [{"type": "shell", "command": AGAIN}]}
    recipes = {
        "confined": confined(folder, port),
        "open": recipe(connect, sandbox={"network": "all"}),
        "setup-open": recipe(f"! {connect}", workspace={"setup": [connect]}),
        "setup-closed": recipe("true", workspace=closed),
        "hosts": recipe(f"! {connect}", PROXIED, sandbox={"network": ["listed.invalid"]}),
        "external": recipe(f"touch {folder}/external", sandbox={"external": True}),
        "write": recipe(
            f"touch {folder}/more/file; touch {folder}/file; true",
            sandbox={"write": [f"{folder}/more"]},
        ),
        "narrow": recipe("test ! -e /var/lib && git status", sandbox={"need": ["read-confined"]}),
        "reset": recipe("true", retry=retry),
        "in-place": recipe(
            "git log -1 && ! touch .git/x && ! mv .git g && ! git config a.b c && touch inside",
            "! touch .harness/runs/x",
            workspace={"mode": "in-place"},
        ),
    }
    jobs = [Job(name, DONE, recipe=what) for name, what in recipes.items()]
    return carry_out(folder, jobs)


@needs_bubblewrap
@pytest.mark.parametrize("name", CASES)
def test_what_holds_in_a_session(ran: Ran, name: str) -> None:
    outcome = ran.session(name)
    failed = [(row["name"], row["output"]) for row in outcome.checks if not row["passed"]]
    assert outcome.status == "passed", (CASES[name], outcome.row["detail"], failed)


@needs_bubblewrap
def test_the_run_records_what_was_proven(ran: Ran) -> None:
    sandbox = json.loads((ran.folder / "result.json").read_text())["sandbox"]
    assert sandbox["mechanism"] == "bubblewrap"
    assert not sandbox["untrusted"]
    assert all(sandbox["properties"].values())
    assert sandbox["bounds"]["processes"] == {"most": Limits().processes, "by": "watch"}
    assert sandbox["bounds"].keys() == {"processes", "tasks", "memory"}
    folder = ran.folder.parents[3]
    assert (folder / "external").exists()
    assert (folder / "more" / "file").exists()
    assert not (folder / "file").exists()


REFUSED: Mapping[str, tuple[dict[str, Any], tuple[str, ...], Mapping[str, str], str]] = {
    "off with a need": (
        {"need": ["net-none"]},
        ("--sandbox", "off"),
        {},
        "--sandbox off gives nothing of what is needed: net-none",
    ),
    "required with an open network": (
        {"network": "all"},
        ("--sandbox", "required"),
        {},
        "net-none must hold (--sandbox required)",
    ),
    "a pull request with an open network": (
        {"network": "all"},
        (),
        {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request"},
        "net-none must hold (the event is not trusted)",
    ),
}


@needs_bubblewrap
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_hold_is_refused_before_any_model_call(
    tmp_path: Path, case: tuple[dict[str, Any], tuple[str, ...], Mapping[str, str], str]
) -> None:
    wish, words, environ, told = case
    job = Job("refused", DONE, recipe=recipe("true", sandbox=wish))
    ran = carry_out(tmp_path, [job], *words, environ=environ)
    outcome = ran.session("refused")
    assert (ran.exit_code, outcome.status, outcome.reason) == (3, "errored", "sandbox")
    assert told in outcome.detail
    assert not outcome.requests


def without_bubblewrap() -> tuple[str, ...]:
    """Starts a program on this host as if bubblewrap were not installed."""
    program = os.path.realpath(shutil.which("bwrap") or "")
    return (program, "--dev-bind", "/", "/", "--ro-bind", "/dev/null", program, "--")


@needs_bubblewrap
@needs_landlock
def test_without_bubblewrap_landlock_contains_and_what_it_lacks_is_told(
    tmp_path: Path, port: int
) -> None:
    jobs = [
        Job("confined", DONE, recipe=confined(tmp_path, port)),
        Job("hosts", DONE, recipe=recipe("true", sandbox={"network": ["listed.invalid"]})),
    ]
    ran = carry_out(tmp_path, jobs, wrapper=without_bubblewrap())
    outcome = ran.session("confined")
    assert outcome.status == "passed", [row["output"] for row in outcome.checks]
    assert "sandbox: landlock, without metadata-confined, loopback" in ran.stderr
    refused = ran.session("hosts")
    assert (refused.status, refused.reason) == ("errored", "sandbox")
    assert "egress-allowlist" in refused.detail
    assert "install bubblewrap" in refused.detail
