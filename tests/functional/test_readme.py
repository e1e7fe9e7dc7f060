"""The front page is true: every command that it shows runs, in its order, in a clean copy.

The commands with `-m` talk to a provider on 127.0.0.1 that plays the sample's script.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import yaml

from harness_batch.recipe.places import bundled_recipes
from markdown_blocks import ROOT, blocks, commands
from wire import Call, Reply, Say, serve

README = ROOT / "README.md"
LEFT_OUT = (".git", ".venv", ".harness", "sample", "__pycache__", "*.egg-info", ".*_cache", "build")
IDENTITY = ("-c", "user.name=A Reader", "-c", "user.email=reader@example.org")
OFFLINE = re.compile(
    r"No matching distribution|ConnectionError|connection broken|Temporary failure|Max retries"
)
"""What pip says where no index can be reached."""
QUICK = " tests/unit/models_sse"
"""The test command runs everything; here a part must do, or it would run itself."""


class Offline(Exception):
    """No package index can be reached: nothing about the page can be told."""


@pytest.mark.skipif(not (ROOT / "runner").is_dir(), reason="the sources are not beside the tests")
async def test_every_command_of_the_front_page_runs(tmp_path: Path) -> None:
    lines = list(commands(README))
    assert "pip install" in lines[0]
    assert "run fix-failing-test" in lines[0]
    try:
        paths = await all_of(lines, prepared(tmp_path), tmp_path)
    except* Offline as group:
        pytest.skip(f"no package index can be reached: {group.exceptions[0]}")
    assert paths == {"/v1/messages", "/v1/chat/completions"}


async def all_of(lines: list[str], checkout: Path, home: Path) -> set[str]:
    """Run the lines one after the other; the paths that the provider was asked for."""
    async with serve(list(script())) as server:
        env = environment(home, server.anthropic_url, server.openai_url)
        for number, line in enumerate(lines):
            if number and line in lines[0]:
                continue  # the first line step by step: it has run
            said = await run(line + QUICK * ("pytest -q -n" in line), checkout, env)
            if number == 0:
                assert "The session passed (exit code 0)" in said
                assert "/attempt-1/change.patch" in said
            if "harness-batch apply" in line:
                await run("python3 -m unittest", checkout / "sample", env)
                await run("git checkout -q .", checkout / "sample", env)
    return {request.path for request in server.requests}


async def run(line: str, checkout: Path, env: dict[str, str]) -> str:
    """The output of a line that must succeed. Raises: Offline."""
    done = await trio.run_process(
        ["bash", "-c", line], cwd=checkout, env=env, check=False, stdin=b"",
        capture_stdout=True, capture_stderr=True,
    )  # fmt: skip
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode and "pip install" in line and OFFLINE.search(said):
        raise Offline(said.strip().splitlines()[-1])
    assert done.returncode == 0, f"{line}\n{said}"
    return said


def prepared(home: Path) -> Path:
    """A clone of the project, with the file that the page says to save."""
    checkout = home / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (models,) = blocks(README, "jsonc")
    (checkout / "models.jsonc").write_text(models.text)
    for words in ("init -q", "add -A", "commit -q -m clone"):
        subprocess.run(["git", *IDENTITY, *words.split()], cwd=checkout, check=True)
    return checkout


def environment(home: Path, anthropic_url: str, openai_url: str) -> dict[str, str]:
    """Of a fresh machine, but for pip's settings and its cache."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    base = Path(sys.base_prefix, "bin")
    return kept | {
        "PATH": f"{home / 'checkout/.venv/bin'}:{base}:{os.environ['PATH']}",
        "HOME": str(home),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache/pip")),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COMPILE": "1",  # what is imported is compiled then: quicker than all at once
        "ANTHROPIC_API_KEY": "sk-ant-for-tests",
        "ANTHROPIC_BASE_URL": anthropic_url,
        "OPENAI_API_KEY": "sk-for-tests",
        "OPENAI_BASE_URL": openai_url,
    }


def script() -> Iterator[Reply]:
    """What the scripted model says to the sample, as a provider would say it."""
    path = bundled_recipes()["fix-failing-test"].parent / "scripts/fix-failing-test.yaml"
    for step in yaml.safe_load(path.read_text("utf-8")):
        calls = [Call(call["name"], call["arguments"]) for call in step.get("calls", ())]
        yield Reply(Say(step["text"]), *calls)
