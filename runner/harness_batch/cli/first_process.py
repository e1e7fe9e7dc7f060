"""As process 1 of a container: the runner goes on in a child, and here its orphans are buried.

Whatever is orphaned in a container becomes a child of process 1. One that does not wait for it
collects zombies until no process can be started any more, and Python waits only for its own.
Signals for the container arrive here and are handed on.
"""

import os
import signal
import sys

HANDED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def stand_by() -> None:
    """Returns in the child only; the process that called ends when the child does, as it did."""
    child = os.fork()
    if not child:
        return

    def hand_on(number: int, _frame: object) -> None:
        os.kill(child, number)

    for number in HANDED_ON:
        signal.signal(number, hand_on)
    # A terminal's Ctrl-C reaches the child by itself; told twice it would not take its time.
    signal.signal(signal.SIGINT, signal.SIG_IGN if sys.stdin.isatty() else hand_on)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
