"""`python -m harness_batch` is `harness-batch`."""

from harness_batch.cli.main import main

if __name__ == "__main__":
    main()
