"""What the tests of threats share: hostile sessions through the command line, and a look at all
that a run left.

    ran = carry_out(folder, [hostile("reads-env", bash("env"))], environ={"DEPLOY_TOKEN": canary()})
    left_behind(ran)   # every file, table and stream of the run, by name
"""

import base64
import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from functional_cli import Form, Job, Outcome, Ran
from wire import Call, Reply, Say
from wire.script import Block

OPEN = {"*": "allow"}
"""Everything: what holds then holds because of walls, not of rules."""
DONE = Reply(Say("That is all."))


def canary() -> str:
    """A secret that no other process of this machine knows."""
    return f"canary-{uuid.uuid4().hex}-x"


def unspoken(secret: str) -> str:
    """A regular expression that finds the secret and not itself: it stands in its own argv."""
    return f"{secret[:-3]}[{secret[-3]}]{secret[-2:]}"


def bash(command: str, **more: Any) -> Call:
    return Call("bash", {"command": command, **more})


def write(path: str, content: str = "X = 1\n") -> Call:
    return Call("write", {"file_path": path, "content": content})


def read(path: str) -> Call:
    return Call("read", {"file_path": path})


def hostile(
    name: str,
    *calls: Block,
    answer: str = "That is all.",
    form: Form = "anthropic",
    provider: Mapping[str, Any] = {},
    **recipe: Any,
) -> Job:
    """A session whose model makes these calls, one a step, and then answers."""
    bare = {"permissions": OPEN, "checks": None, "expect": None}
    script = [*map(Reply, calls), Reply(Say(answer))]
    return Job(name, script, form, {**bare, **recipe}, provider)


def told(session: Outcome, step: int) -> str:
    """What the model was told about its call number `step` (from 1)."""
    return json.dumps(session.requests[step].json["messages"][-1], ensure_ascii=False)


def spellings(secret: str) -> Iterator[str]:
    """How a secret is looked for; base64 and base32 by what stays whole in any frame."""
    data = secret.encode()
    yield from (secret, secret[::-1], data.hex(), data.hex().upper(), quote(secret, safe=""))
    yield "".join(f"%{byte:02X}" for byte in data)
    yield json.dumps(secret)[1:-1]
    for before in range(3):
        yield base64.b64encode(b"x" * before + data).decode()[before + 2 : -6]
    for before in range(5):
        yield base64.b32encode(b"x" * before + data).decode()[8:-10]


def left_behind(ran: Ran) -> dict[str, str]:
    """Every file, table and stream of a run as text, by name."""
    project = ran.project
    files = [path for path in (project / ".harness").rglob("*") if path.is_file()]
    files += [path for path in project.glob("*.copy") if path.is_file()]
    texts = {
        str(path.relative_to(project)): path.read_bytes().decode("utf-8", "replace")
        for path in files
    }
    for path in files:
        if path.suffix == ".duckdb":
            texts[f"{path.name} (tables)"] = _rows(path)
    return {**texts, "stdout": ran.stdout, "stderr": ran.stderr}


def found_in(ran: Ran, secret: str) -> list[str]:
    """Where a spelling of the secret stands among all that a run left."""
    wanted = set(spellings(secret))
    return [
        f"{spelling} in {place}"
        for place, text in left_behind(ran).items()
        for spelling in wanted
        if spelling in text
    ]


def _rows(database: Path) -> str:
    with duckdb.connect(str(database), read_only=True) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        ).fetchall()
        return "\n".join(
            str(connection.execute(f'SELECT * FROM "{table}"').fetchall()) for (table,) in tables
        )
