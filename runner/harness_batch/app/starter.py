"""What `init` writes: a first recipe, and the sample repository that the README works on."""

import json
import shutil
from pathlib import Path

from harness_batch import __version__
from harness_batch.errors import GitError, UsageError
from harness_batch.recipe.places import sample_project
from harness_batch.workspace.patch import AUTHOR_EMAIL, AUTHOR_NAME

STARTER = """\
# A first recipe. `harness-batch validate FILE` checks it, `harness-batch plan FILE` shows it,
# `harness-batch schema recipe` prints every key there is.
name: first
description: Finds and mends one small thing.
prompt: |
  Look through this repository for one small, safe improvement (a typo, a dead line, a wrong
  comment) and make it. Say in two sentences what you did.
# model: anthropic/claude-sonnet-5   # or -m on the command line
permissions:                          # nothing else is allowed, and nobody is asked
  edit: {"**": allow}
limits: {steps: 20, seconds: 600}
expect: {patch: required, max_files: 3}
"""


SAMPLE_DATE = "2026-01-01T00:00:00 +0000"
"""Always the same, so that the commit is too: recordings name the commit they start from."""

WORKFLOW = """\
# Runs {recipe} at night and on a button. Every input and output: docs/action.md of harness-batch.
name: agents
on:
  schedule: [{{cron: "0 3 * * 1-5"}}]
  workflow_dispatch:
permissions:
  contents: read
jobs:
  agents:
    runs-on: ubuntu-24.04
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: your-org/harness-batch@v{version} # where your copy is, pinned to a commit
        with:
          recipes: {recipe}
          model: anthropic/claude-sonnet-5
          max-cost: "2.00"
          max-time: 50m
          prepare-sandbox: "true"
        env:
          ANTHROPIC_API_KEY: ${{{{ secrets.ANTHROPIC_API_KEY }}}}
"""


def starter_workflow(recipe: Path) -> str:
    """The text of a first workflow that runs the recipe."""
    return WORKFLOW.format(recipe=json.dumps(recipe.as_posix()), version=__version__)


def starter_recipe() -> str:
    """The text of a first recipe."""
    return STARTER


def make_sample(target: Path) -> None:
    """The sample project as a git repository with one commit. Raises: UsageError, GitError."""
    if target.exists() and any(target.iterdir()):
        raise UsageError(f"{target} is there already and not empty; name another folder")
    shutil.copytree(sample_project(), target, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    # Loaded only now: GitPython looks for git when it is imported.
    from git import Actor, GitCommandError, Repo

    author = Actor(AUTHOR_NAME, AUTHOR_EMAIL)
    try:
        with Repo.init(target, initial_branch="main") as repository:
            repository.git.add(all=True)
            repository.index.commit(
                "A small project with a failing test",
                author=author,
                committer=author,
                author_date=SAMPLE_DATE,
                commit_date=SAMPLE_DATE,
            )
    except GitCommandError as error:
        raise GitError(f"cannot make the sample repository {target}: {error}") from error
