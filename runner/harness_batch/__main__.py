"""`python -m harness_batch` is `harness-batch`."""

import os
import sys

HERE = os.getcwd()  # noqa: PTH109 - pathlib would be looked for in the current folder first

if sys.path[0] == HERE and not __file__.startswith(f"{HERE}{os.sep}harness_batch{os.sep}"):
    # `-m` puts the current folder first, and a `trio.py` of the repository would be ours.
    del sys.path[0]

from harness_batch.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
