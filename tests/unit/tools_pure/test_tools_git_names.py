"""Which names some file system takes for git's own folder."""

import pytest

from harness_batch.tools.paths import is_git_name


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".Git",
        ".git ",
        ".git.",
        ".git . .",
        "git~1",
        "GIT~1",
        ".g\u200cit",
        ".g\u200dit",
        "\ufeff.git",
        ".gi\u206at",
        ".git::$INDEX_ALLOCATION",
        ".git:x",
        ".git\\x",
        "\uff0egit",
    ],
)
def test_is_git(name: str) -> None:
    assert is_git_name(name)


@pytest.mark.parametrize("name", [".gitignore", ".github", ".gitattributes", "git", "x.git", ".gi"])
def test_is_not_git(name: str) -> None:
    assert not is_git_name(name)
