"""What started a job of GitHub Actions, and whether a run may trust what is checked out. Pure.

The event's fields come from whoever opened the pull request: they are data, and nothing else than
the fields read here is looked at.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

REVIEWS: Final = (
    *("pull_request", "pull_request_target"),
    *("pull_request_review", "pull_request_review_comment"),
)
"""Events of a change that somebody proposes."""
_WITH_SECRETS: Final = ("pull_request_target", "workflow_run", "issue_comment")
"""Events that anybody can cause, and whose jobs have the secrets all the same."""
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@frozen(kw_only=True)
class Trigger:
    """The event of a job."""

    event: str
    """`pull_request`, `schedule`, `workflow_dispatch`, `push` ..."""
    repository: str | None = None
    """`owner/name`."""
    number: int | None = None
    """Of the pull request."""
    base_sha: str | None = None
    """What the pull request is against."""
    base_ref: str | None = None
    """The branch of that."""
    head_sha: str | None = None
    default_branch: str | None = None
    job_sha: str | None = None
    """GITHUB_SHA: what a checkout gives that does not say otherwise."""

    @property
    def reviews(self) -> bool:
        """Whether somebody else's change is at work."""
        return self.event in REVIEWS


def trigger_of(environ: Mapping[str, str], event: object) -> Trigger:
    """The event, from the runner's variables and the parsed file of GITHUB_EVENT_PATH."""
    pull = _at(event, "pull_request")
    number = _at(pull, "number")
    return Trigger(
        event=environ.get("GITHUB_EVENT_NAME", ""),
        repository=environ.get("GITHUB_REPOSITORY"),
        number=number if type(number) is int and number > 0 else None,
        base_sha=_sha(_at(pull, "base", "sha")),
        base_ref=_text(_at(pull, "base", "ref")),
        head_sha=_sha(_at(pull, "head", "sha")),
        default_branch=_text(_at(event, "repository", "default_branch")),
        job_sha=_sha(environ.get("GITHUB_SHA")),
    )


def refusal(trigger: Trigger, checked_out: str | None, *, target_allowed: bool) -> str | None:
    """Why a job must not run agents on this checkout; None when it may.

    `checked_out` is the commit of the work tree. Some jobs hold the secrets of the repository
    though a stranger started them: with a pull request's head checked out, its own tests and
    scripts get them.
    """
    if trigger.event not in _WITH_SECRETS or target_allowed:
        return None
    own = trigger.base_sha if trigger.event == "pull_request_target" else trigger.job_sha
    if checked_out is not None and checked_out in (own, trigger.job_sha):
        return None
    return (
        f"{trigger.event} runs with the repository's secrets, and the checkout is not the "
        f"base commit {own or '(unknown)'} but {checked_out or 'unknown'}: use "
        "pull_request, or check the base out; allow-pull-request-target says that you know"
    )


def _at(value: object, *keys: str) -> Any:  # noqa: ANN401 - a field of foreign JSON, checked by the caller
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _sha(value: object) -> str | None:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.isprintable() and value else None
