"""A provider on 127.0.0.1 for tests: all three wire formats, driven by a script, able to misbehave.

    async with serve([Reply(Call("bash", {"command": "true"})), Reply(Say("done"))]) as server:
        ...  # server.openai_url, server.anthropic_url; afterwards server.requests

Which answer a request gets is decided by the number of assistant messages in it, so any number of
sessions can talk to one server. What is not well-formed gets the 400 that the real API would give.
"""

from wire.script import (
    Answer,
    Call,
    Delivery,
    Raw,
    Redacted,
    Refuse,
    Reply,
    Say,
    Think,
    Tries,
    Usage,
)
from wire.server import Seen, Server, serve

__all__ = [
    "Answer",
    "Call",
    "Delivery",
    "Raw",
    "Redacted",
    "Refuse",
    "Reply",
    "Say",
    "Seen",
    "Server",
    "Think",
    "Tries",
    "Usage",
    "serve",
]
