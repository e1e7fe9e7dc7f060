"""Which CI system started us, read off its environment. Pure."""

from collections.abc import Mapping

from attrs import frozen


@frozen
class CiJob:
    """Where a run came from; all None on a person's machine."""

    provider: str | None = None
    url: str | None = None
    trigger: str | None = None


_MARKS = (
    ("GITHUB_ACTIONS", "github", "", "GITHUB_EVENT_NAME"),
    ("GITLAB_CI", "gitlab", "CI_JOB_URL", "CI_PIPELINE_SOURCE"),
    ("CIRCLECI", "circleci", "CIRCLE_BUILD_URL", ""),
    ("BUILDKITE", "buildkite", "BUILDKITE_BUILD_URL", "BUILDKITE_SOURCE"),
    ("TF_BUILD", "azure", "", "BUILD_REASON"),
    ("JENKINS_URL", "jenkins", "BUILD_URL", ""),
    ("BITBUCKET_BUILD_NUMBER", "bitbucket", "", ""),
)
"""Variable that marks the system, its name, the variables of the job's URL and of the trigger."""


def ci_job(environ: Mapping[str, str]) -> CiJob:
    """The first system whose mark is set."""
    for mark, provider, url, trigger in _MARKS:
        if environ.get(mark):
            place = environ.get(url) if url else _github_url(environ)
            return CiJob(provider, place, environ.get(trigger))
    return CiJob()


_REVIEW_BASES = (
    ("GITHUB_BASE_REF", "origin/{}"),
    ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "{}"),
    ("BITBUCKET_PR_DESTINATION_COMMIT", "{}"),
    ("BUILDKITE_PULL_REQUEST_BASE_BRANCH", "origin/{}"),
    ("CHANGE_TARGET", "origin/{}"),
    ("SYSTEM_PULLREQUEST_TARGETBRANCH", "origin/{}"),
)
"""Variable that names what a change under review is to be merged into, and the ref it means."""


def review_base(environ: Mapping[str, str]) -> str | None:
    """The ref that a pull or merge request is against; None when this is no job of one."""
    for name, form in _REVIEW_BASES:
        if value := environ.get(name):
            return form.format(value.removeprefix("refs/heads/"))
    return None


_STRANGERS = (
    *("pull_request", "pull_request_target", "pull_request_review", "pull_request_review_comment"),
    *("issues", "issue_comment", "discussion", "discussion_comment", "fork", "watch"),
    *("merge_request_event", "external_pull_request_event", "PullRequest"),
)
"""Triggers behind which anybody may stand."""


def is_untrusted(environ: Mapping[str, str]) -> bool:
    """Whether people without a right to write may have a say in what this run works on."""
    return ci_job(environ).trigger in _STRANGERS or review_base(environ) is not None


def _github_url(environ: Mapping[str, str]) -> str | None:
    parts = [environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")]
    return "{}/{}/actions/runs/{}".format(*parts) if all(parts) else None
