"""A pull request for a branch: opened once, its text renewed when the branch gets a new change."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from harness_batch.errors import CodeHostError
from harness_batch.github.api import Api


@frozen(kw_only=True)
class Proposal:
    """What a pull request says."""

    branch: str
    base: str
    title: str
    body: str
    labels: Sequence[str] = ()
    draft: bool = False


@frozen
class Pull:
    """A pull request that is there."""

    number: int
    url: str
    created: bool


def propose(api: Api, proposal: Proposal) -> Pull:
    """Open the branch's pull request, or renew the one that is open. Raises: CodeHostError."""
    owner = api.repository.partition("/")[0]
    text = {"title": proposal.title, "body": proposal.body}
    found = api.get("/pulls", head=f"{owner}:{proposal.branch}", state="open")
    for pull in found if isinstance(found, list) else ():
        number = _number(pull)
        return Pull(number, _url(api.send("PATCH", f"/pulls/{number}", text)), created=False)
    wanted = {**text, "head": proposal.branch, "base": proposal.base, "draft": proposal.draft}
    made = api.send("POST", "/pulls", wanted)
    number = _number(made)
    if proposal.labels:
        api.send("POST", f"/issues/{number}/labels", {"labels": list(proposal.labels)})
    return Pull(number, _url(made), created=True)


def default_branch(api: Api) -> str:
    """What pull requests of the repository are against unless told. Raises: CodeHostError."""
    said = api.get("")
    branch = said.get("default_branch") if isinstance(said, dict) else None
    if not isinstance(branch, str):
        raise CodeHostError(f"GitHub does not say which branch of {api.repository} is the default")
    return branch


def _number(said: Any) -> int:  # noqa: ANN401 - foreign JSON
    number = said.get("number") if isinstance(said, dict) else None
    if not isinstance(number, int):
        raise CodeHostError("GitHub answered with a pull request that has no number")
    return number


def _url(said: Any) -> str:  # noqa: ANN401 - as above
    url = said.get("html_url") if isinstance(said, dict) else None
    return url if isinstance(url, str) else ""
