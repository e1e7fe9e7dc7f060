"""One comment on a pull request for each recipe, written anew by every run instead of one more."""

from hashlib import blake2b
from typing import Any, Final

from harness_batch.github.api import Api

MARK: Final = "<!-- harness-batch: {} -->"
_LONGEST_NAME: Final = 100


def stick(api: Api, number: int, name: str, text: str) -> str:
    """Write the comment of that name, in place of ours when there is one; its URL.

    Raises: CodeHostError.
    """
    mark = MARK.format(_inert(name))
    body = {"body": f"{mark}\n{text}"}
    for comment in api.pages(f"/issues/{number}/comments"):
        if _is_ours(comment, mark):
            return _url(api.send("PATCH", f"/issues/comments/{comment['id']}", body))
    return _url(api.send("POST", f"/issues/{number}/comments", body))


def _is_ours(comment: object, mark: str) -> bool:
    """A bot's comment that begins with the mark: a person may quote it."""
    match comment:
        case {"id": int(), "body": str(body), "user": {"type": "Bot"}}:
            return body.startswith(mark)
        case _:
            return False


def _inert(name: str) -> str:
    """A recipe's name cannot end the HTML comment, and no two names are one."""
    plain = "".join(c if c.isalnum() or c in "._=,@/-" else "_" for c in name)[:_LONGEST_NAME]
    if plain == name and "--" not in name:
        return name
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return f"{plain.replace('--', '__')} {digest}"


def _url(said: Any) -> str:  # noqa: ANN401 - foreign JSON
    url = said.get("html_url") if isinstance(said, dict) else None
    return url if isinstance(url, str) else ""
