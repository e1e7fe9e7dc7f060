"""Keys from every place, and tokens got on the way, echoed by a hostile provider: found nowhere."""

import base64
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from functional_cli import Bench, Form, Ran, read_run
from harness_batch.config.auth_file import store_key
from security_bench import bash, canary, found_in, hostile, unspoken
from wire import Reply, Say, Seen, serve
from wire.github import GitHub
from wire.script import Answer

KEYS = {name: f"sk-{canary()}" for name in ("by-env", "by-auth-file", "literal", "by-file")}
SIGNED = canary()
"""The value of a header."""
LOGIN = f"gho_{canary()}"
"""Of Copilot."""
SEARCH = (
    "for p in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$p; done 2>/dev/null"
)


def echo(text: str) -> Reply:
    """What a provider that wants it written down says: in a text, and for tools to print."""
    data = base64.b64encode(text.encode()).decode()
    said = f"{text} {text[::-1]} {text.encode().hex()} {data}"
    return Reply(Say(said), bash(f"echo '{text}'; echo {data}; env"), bash(f"echo '{text}' | rev"))


def provider_says(looked_for: Sequence[str], seen: Seen) -> Answer:
    """Echo what it was signed with; then look for the keys in the processes; then answer."""
    if seen.step == 0:
        names = ("x-api-key", "authorization", "x-signed")
        given = " ".join(seen.headers.get(name, "") for name in names)
        return echo(given)
    if seen.step == 1:
        patterns = " ".join(f"-e '{unspoken(key)}'" for key in looked_for)
        return Reply(bash(f"{SEARCH} | grep -c {patterns}; echo searched"))
    return Reply(Say("That is all."))


@pytest.fixture(scope="module")
def github() -> GitHub:
    return GitHub((), logins={LOGIN})


@pytest.fixture(scope="module")
def ran(github: GitHub, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    bench = Bench(tmp_path_factory.mktemp("credentials"), {"ENV_KEY": KEYS["by-env"]})
    bench.set_up()
    file = bench.folder / "home/config/harness-batch/auth.json"
    store_key(file, "by-auth-file", KEYS["by-auth-file"])
    store_key(file, "copilot", LOGIN)
    (bench.folder / "key.txt").write_text(KEYS["by-file"])
    return trio.run(partial(_carried_out, bench, github))


def _jobs(folder: Path) -> Mapping[str, tuple[Form, dict[str, Any]]]:
    return {
        "by-env": ("anthropic", {"api_key": "{env:ENV_KEY}"}),
        "by-auth-file": ("openai-chat", {"api_key": ""}),
        "literal": ("anthropic", {"api_key": KEYS["literal"]}),
        "by-file": ("openai-chat", {"api_key": f"{{file:{folder}/key.txt}}"}),
        "signed": ("anthropic", {"api_key": "", "headers": {"x-signed": SIGNED}}),
    }


async def _carried_out(bench: Bench, github: GitHub) -> Ran:
    secrets = [*KEYS.values(), SIGNED, LOGIN]
    says = partial(provider_says, secrets)

    def copilot(seen: Seen) -> Answer:
        if seen.step == 1 and github.exchanges:
            github.expired.add(github.exchanges[0])  # renewed in the middle of a session
        answer = github.answer(seen)
        return says(seen) if isinstance(answer, Reply) else answer

    async with (
        serve(says) as server,
        serve(lambda seen: copilot(seen) if seen.body else github.answer(seen), relay=True) as hub,
    ):
        github.port = hub.port
        recipes, providers = [], {}
        for name, (form, settings) in _jobs(bench.folder).items():
            job = hostile(name, form=form, provider=settings)
            path, providers[name] = bench.write_job(job, server.anthropic_url)
            recipes.append(str(path))
        path, providers["copilot"] = _copilot_job(bench, github)
        config = bench.folder / "config.json"
        config.write_text(json.dumps({"provider": providers}), encoding="utf-8")
        config.chmod(0o600)
        words = ("--config", str(config), "--events", "events.copy")
        done = await bench.run("run", *recipes, str(path), *words)
    said = done.stdout.decode(), done.stderr.decode()
    (folder,) = (bench.project / ".harness" / "runs").glob("run_*")
    return read_run(bench, folder, done.returncode, said, (*server.requests, *hub.requests))


def _copilot_job(bench: Bench, github: GitHub) -> tuple[Path, dict[str, Any]]:
    path, settings = bench.write_job(hostile("copilot"), "")
    return path, {"models": settings["models"], **github.settings()}


def test_every_session_was_signed_in_and_worked(ran: Ran, github: GitHub) -> None:
    assert ran.exit_code == 0, ran.stderr
    assert len(ran.tables["session"]) == 6
    assert len(github.exchanges) == 2
    used = {str(value) for seen in ran.requests for value in seen.headers.values()}
    for key in (*KEYS.values(), SIGNED, *github.exchanges):
        assert any(key in value for value in used), "the provider echoes what it never got"


def test_a_refused_token_is_a_row_of_its_own_and_the_step_goes_on(ran: Ran) -> None:
    session = ran.session("copilot")
    assert session.status == "passed"
    fates = [(call["step"], call["try"], call["error_kind"]) for call in session.calls]
    assert fates == [(1, 1, None), (2, 1, "auth"), (2, 2, None), (3, 1, None)]
    (refused,) = (call for call in session.calls if call["error_kind"])
    assert refused["http_status"] == 401
    assert "***" in refused["error"]


@pytest.mark.parametrize("name", [*KEYS, "signed", "login", "first token", "second token"])
def test_no_spelling_of_a_credential_is_left_behind(ran: Ran, github: GitHub, name: str) -> None:
    tokens = dict(zip(("first token", "second token"), github.exchanges, strict=True))
    secrets = {**KEYS, "signed": SIGNED, "login": LOGIN, **tokens}
    assert found_in(ran, secrets[name]) == []


def test_no_process_of_a_tool_held_a_credential(ran: Ran) -> None:
    for job in ("by-env", "by-auth-file", "literal", "by-file", "signed", "copilot"):
        search = ran.session(job).tools[-1]
        assert search["status"] == "completed"
        outputs = [json.dumps(seen.json["messages"][-1]) for seen in ran.session(job).requests]
        assert "0\\nsearched" in outputs[-1]


def test_what_was_echoed_was_masked_and_not_just_lost(ran: Ran) -> None:
    for job in ("by-env", "by-auth-file", "literal", "by-file", "signed", "copilot"):
        assert ran.session(job).transcript.count("[masked]") >= 6
