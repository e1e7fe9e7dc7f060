"""A batch pays for what its prompts share once: 32 sessions at a time against a server that caches
what prompts begin with, and sells it as Anthropic does.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

import trio
from attrs import define, field

from functional_cli import KEY, MAIN_RECIPE, READ, Bench, Job, Json
from wire import Answer, Delivery, Reply, Say, Seen, Usage, serve

SESSIONS = 32
MOST = 1.1
"""What the batch may cost, in shares of what it would cost with a cache that is warm at once."""
INPUT, WRITE, READ_PRICE, OUTPUT = 1.0, 1.25, 0.1, 5.0
"""Prices of a token, in units of one of fresh input."""
LEAST_TOKENS = 1024
"""A shorter prefix is not kept."""
FIRST_BYTE_SECONDS = 0.4


def tokens(data: bytes) -> int:
    return math.ceil(len(data) / 4)


@define
class Cache:
    """Keeps prefixes up to each mark, and adds up what the requests cost."""

    delay: float
    """Seconds until what a request has written can be read by others."""
    warm_at: dict[str, float] = field(factory=dict)
    bill: float = 0.0

    def sell(self, body: Json, size: int, now: float) -> Usage:
        prefixes = {
            hashlib.blake2b(prefix).hexdigest(): tokens(prefix)
            for prefix in marked(body)
            if tokens(prefix) >= LEAST_TOKENS
        }
        warm = (size for key, size in prefixes.items() if self.warm_at.get(key, math.inf) <= now)
        read = max(warm, default=0)
        written = max(prefixes.values(), default=0) - read
        fresh = max(0, size - read - written)
        for key in prefixes:
            self.warm_at.setdefault(key, now + self.delay)
        self.bill += fresh * INPUT + written * WRITE + read * READ_PRICE + 10 * OUTPUT
        return Usage(input=fresh, cache_read=read, cache_write_5m=written, output=10)


@define
class Vendor:
    """A server's two books: what it charges, and what it would with a cache that needs no time."""

    real: Cache = field(factory=lambda: Cache(FIRST_BYTE_SECONDS))
    ideal: Cache = field(factory=lambda: Cache(0.0))

    def answer(self, seen: Seen) -> Answer:
        now, size = trio.current_time(), tokens(seen.body)
        self.ideal.sell(seen.json, size, now)
        usage = self.real.sell(seen.json, size, now)
        said = Say("It is fine.") if seen.step else READ
        return Reply(said, usage=usage, delivery=Delivery(first_byte=FIRST_BYTE_SECONDS))


def marked(body: Json) -> Iterator[bytes]:
    """What the request begins with, up to each of its cache marks, shortest first."""
    begun = b""
    blocks = [("tool", tool) for tool in body.get("tools", [])]
    blocks += [("system", block) for block in body.get("system", [])]
    for message in body["messages"]:
        blocks += [(message["role"], block) for block in message["content"]]
    for where, block in blocks:
        plain = {key: value for key, value in block.items() if key != "cache_control"}
        begun += json.dumps([where, plain]).encode()
        if "cache_control" in block:
            yield begun


async def test_a_batch_writes_its_common_prefix_once(tmp_path: Path) -> None:
    bench, vendor = Bench(tmp_path), Vendor()
    bench.set_up()
    recipe = {
        **dict.fromkeys(MAIN_RECIPE),
        "instructions": "Rules of the house. " * 1500,
        "prompt": "Look at the prices, shelf {{ n }}.",
        "matrix": {"n": list(range(SESSIONS))},
    }
    async with serve({"vendor": vendor.answer}, key=KEY) as server:
        path, entry = bench.write_job(Job("vendor", (), recipe=recipe), server.anthropic_url)
        config = bench.folder / "config.json"
        config.write_text(json.dumps({"provider": {"vendor": entry}}), encoding="utf-8")
        config.chmod(0o600)
        done = await bench.run("run", str(path), "--config", str(config), "-j", str(SESSIONS))

    assert done.returncode == 0, done.stderr.decode()
    assert len(server.requests) == 2 * SESSIONS
    assert vendor.real.bill <= MOST * vendor.ideal.bill
