"""CPU per step while a conversation grows: `python benchmarks/steps.py [STEPS ...]`.

Each row is one session of so many steps; each step reads a page of about 2 kB. The provider is a
cheap server in this process, so that the CPU of the children is the runner's alone. A session
without steps is subtracted. What sending the longer transcript costs is in the column of bytes.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import trio
from attrs import define, frozen

WINDOWS = {"all of it fits": 10_000_000, "window of 32,000": 32_000}
DEFAULT_STEPS = (20, 100, 400)
PAGE_LINES = 25
BOOK = "\n".join(f"line {n:05}: {'lorem ipsum ' * 6}" for n in range(20_000))
SUMMARY = "Everything is read so far."


@define
class Provider:
    """Speaks OpenAI's chat format; asks for a page a step and then answers."""

    steps: int
    asked: int = 0
    bytes_in: int = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, to its end."""
        received = bytearray()
        try:
            while body := await _body(stream, received):
                self.bytes_in += len(body)
                await stream.send_all(_reply(*self._answer(body)))
        except trio.BrokenResourceError:
            return

    def _answer(self, body: bytes) -> tuple[dict[str, object], str, int]:
        tokens = len(body) // 4
        if b"<conversation>" in body:
            return {"content": SUMMARY}, "stop", tokens
        self.asked += 1
        if self.asked > self.steps:
            return {"content": "Read."}, "stop", tokens
        page = {"file_path": "book.txt", "offset": self.asked * PAGE_LINES, "limit": PAGE_LINES}
        function = {"name": "read", "arguments": json.dumps(page)}
        call = {"index": 0, "id": f"call_{self.asked}", "type": "function", "function": function}
        return {"tool_calls": [call]}, "tool_calls", tokens


async def _body(stream: trio.SocketStream, received: bytearray) -> bytes:
    while (end := received.find(b"\r\n\r\n")) < 0:
        if not await _more(stream, received):
            return b""
    head = bytes(received[:end]).decode("latin-1").lower()
    size = next(int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:"))
    while len(received) < end + 4 + size:
        if not await _more(stream, received):
            return b""
    body = bytes(received[end + 4 : end + 4 + size])
    del received[: end + 4 + size]
    return body


async def _more(stream: trio.SocketStream, received: bytearray) -> bool:
    data = await stream.receive_some(262_144)
    received += data
    return bool(data)


def _reply(delta: dict[str, object], reason: str, tokens: int) -> bytes:
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    chunks = (
        {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    )
    events = "".join(f"data: {json.dumps({'id': 'r', 'model': 'm', **c})}\n\n" for c in chunks)
    body = f"{events}data: [DONE]\n\n".encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


@frozen
class Measured:
    """One session."""

    steps: int
    cpu_s: float
    bytes_sent: int


async def measure(folder: Path, steps: int, context: int) -> Measured:
    """Run a session of so many steps."""
    provider = Provider(steps)
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, provider.serve, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1"
        _write(folder, url, context, steps)
        before = _cpu_of_children()
        words = ["recipe.json", "--config", "config.json", "--out", f"out-{context}-{steps}"]
        await trio.run_process(
            [sys.executable, "-m", "harness_batch", "run", *words],
            cwd=folder,
            capture_stdout=True,
            capture_stderr=True,
        )
        cpu = _cpu_of_children() - before
        nursery.cancel_scope.cancel()
    return Measured(steps, cpu, provider.bytes_in)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write(folder: Path, url: str, context: int, steps: int) -> None:
    models = {"m": {"context": context, "cost": {"input": 1.0, "output": 1.0}}}
    provider = {"type": "openai-chat", "base_url": url, "api_key": "none", "models": models}
    recipe = {
        "name": "steps",
        "model": "mine/m",
        "prompt": "Read book.txt.",
        "permissions": {"read": "allow"},
        "limits": {"steps": steps + 2},
    }
    config = folder / "config.json"
    config.write_text(json.dumps({"provider": {"mine": provider}}))
    config.chmod(0o600)
    (folder / "recipe.json").write_text(json.dumps(recipe))


def _set_up(folder: Path) -> None:
    (folder / "book.txt").write_text(BOOK)
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "book.txt"], check=True)
    who = ["-c", "user.name=B", "-c", "user.email=b@example.invalid"]
    subprocess.run([*git, *who, "commit", "-q", "-m", "A book"], check=True)


async def rows(folder: Path, counts: tuple[int, ...]) -> list[str]:
    """The table's lines."""
    lines = ["| conversation | steps | CPU s | CPU ms/step | sent MB | CPU ms/sent MB |"]
    lines.append("|---|---|---|---|---|---|")
    await measure(folder, 1, 1_000_000)  # what is compiled and cached once is no step's cost
    for name, context in WINDOWS.items():
        start = await measure(folder, 0, context)
        for count in counts:
            one = await measure(folder, count, context)
            lines.extend(_line(name, one, one.cpu_s - start.cpu_s))
    return lines


def _line(name: str, one: Measured, cpu_s: float) -> Iterator[str]:
    sent = one.bytes_sent / 1e6
    each = f"{1000 * cpu_s / one.steps:.1f} | {sent:.1f} | {1000 * cpu_s / sent:.0f}"
    yield f"| {name} | {one.steps} | {cpu_s:.2f} | {each} |"


def main() -> None:
    """Measure and print."""
    counts = tuple(map(int, sys.argv[1:])) or DEFAULT_STEPS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _set_up(folder)
        print("\n".join(trio.run(rows, folder, counts)))


if __name__ == "__main__":
    main()
