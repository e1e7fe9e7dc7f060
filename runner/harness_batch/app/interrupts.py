"""SIGINT and SIGTERM over a whole run, reports included: stop in time, or at once when told twice.

The first signal stops the sessions and everything is still written down, within 10 seconds; a
second one, or those seconds, end the process where it stands. That loses nothing either: the
journal is whole after every line, and the session supervisors end all that runs when their
lifeline closes with this process.
"""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from typing import Final

import trio
from attrs import define, field

from harness_batch.batch.exit_code import INTERRUPTED, TERMINATED

GRACE_S: Final = 7.0
"""How long sessions may take to write down what they did; then they are cut off."""
LAST_S: Final = 9.5
"""When the process ends whatever is still to do."""
_LAST_WORDS: Final = b"harness-batch: there was no time to report; `harness-batch report` does it\n"


def received() -> AbstractContextManager[AsyncIterator[int]]:
    """The signals, ours to deal with while the block runs."""
    return trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM)


@define
class Interrupts:
    """The signals of one run."""

    code: int | None = None
    """Exit code of the first signal; None while there was none."""
    came: trio.Event = field(factory=trio.Event)

    async def listen(self, signals: AsyncIterator[int]) -> None:
        """For a task that lasts as long as the run; `signals` as of `received`."""
        async with trio.open_nursery() as nursery:
            async for number in signals:
                code = INTERRUPTED if number == signal.SIGINT else TERMINATED
                if self.code is not None:
                    os._exit(code)
                self.code = code
                self.came.set()
                nursery.start_soon(self._end_in_time)

    async def _end_in_time(self) -> None:
        await trio.sleep(LAST_S)
        with suppress(OSError):
            os.write(2, _LAST_WORDS)
        os._exit(self.code or TERMINATED)
