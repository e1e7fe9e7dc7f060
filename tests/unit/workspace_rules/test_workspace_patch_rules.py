"""Which patches the rules let through."""

import pytest
from attrs import evolve

from harness_batch.recipe.record import PatchRules
from harness_batch.workspace.patch_rules import GITLINK, PatchEntry, judge_patch, remarks

DEFAULT = PatchRules()


def entry(path: str, link: str | None = None) -> PatchEntry:
    return PatchEntry(path=path, status="A", new_mode=0o100644, link_target=link)


@pytest.mark.parametrize(
    "path",
    [
        *("src/a.py", "github/x", "docs/.github.md", "AGENTS.md.txt", "x/.github/y", "new\nline"),
    ],
)
def test_ordinary_paths_pass_by_default(path: str) -> None:
    assert judge_patch([entry(path)], DEFAULT) is None


@pytest.mark.parametrize(
    "path",
    [
        *(".github/workflows/ci.yml", ".GitHub/x", ".harness/agents/a.md", "harness.jsonc"),
        *("AGENTS.md", "a/b/AGENTS.md", "agents.md", "a\nb/AGENTS.md", "a\nb/c\n/CLAUDE.md"),
        *("CLAUDE.md", ".claude/settings.json", ".mcp.json", "\udcff/AGENTS.md"),
        *("CODEOWNERS", "docs/CODEOWNERS", "action.yml", "tools/x/action.yaml", ".gitmodules"),
        *("uv.lock", "web/package-lock.json", "go.sum", "yarn.LOCK", "a/.gitattributes"),
        *(".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml", ".pre-commit-config.yaml"),
    ],
)
def test_files_that_steer_agents_and_ci_are_protected_by_default(path: str) -> None:
    reason = judge_patch([entry("fine"), entry(path)], DEFAULT)
    assert reason is not None
    assert reason.endswith("is protected (patch.protect)")
    assert "\n" not in reason


def test_an_allow_list_allows_nothing_else_and_protection_wins() -> None:
    rules = PatchRules(allow=("src/**", "*.md"), protect=("src/vendor/**", "**/*.lock"))
    assert judge_patch([entry("src/a"), entry("docs/x.md"), entry(".github/x.md")], rules) is None
    assert judge_patch([entry("tests/a")], rules) == (
        "tests/a: is not among the allowed paths (patch.allow)"
    )
    assert "protected" in (judge_patch([entry("src/vendor/x")], rules) or "")
    assert "protected" in (judge_patch([entry("src/uv.lock")], rules) or "")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        *(("l", "/etc/passwd"), ("l", ".."), ("l", "../x"), ("a/b/l", "../../../x")),
        *(("a/l", "x/../../.."), ("a/l", "b/../c"), ("l", ".git/config"), ("a/l", "../.GIT")),
        *(("l", "./../x"), ("l", ".//.././x")),
    ],
)
def test_links_that_may_lead_out_are_refused(path: str, target: str) -> None:
    assert "links" in (judge_patch([entry(path, target)], DEFAULT) or "")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "a"),
        ("a/l", "../b"),
        ("a/b/l", "../../c/d"),
        ("l", "..."),
        ("l", ".gitignore"),
        ("l", "."),
    ],
)
def test_links_within_the_tree_pass(path: str, target: str) -> None:
    assert judge_patch([entry(path, target)], DEFAULT) is None


def test_submodules_special_bits_and_problems_are_refused() -> None:
    plain = entry("x")
    assert judge_patch([evolve(plain, new_mode=GITLINK)], DEFAULT) == "x: changes a submodule"
    assert judge_patch([evolve(plain, old_mode=GITLINK)], DEFAULT) == "x: changes a submodule"
    assert judge_patch([evolve(plain, special_bits=True)], DEFAULT) == "x: is setuid or setgid"
    assert judge_patch([evolve(plain, problem="too big")], DEFAULT) == "x: too big"


def test_names_that_some_file_systems_mix_up_and_binary_programs_are_refused() -> None:
    plain = entry("Docs/x")
    told = judge_patch([evolve(plain, twin="docs/x")], DEFAULT)
    assert told == "Docs/x: differs from docs/x only in case or spelling"
    program = evolve(plain, binary=True, new_mode=0o100755)
    assert "binary program" in (judge_patch([program], DEFAULT) or "")
    assert judge_patch([evolve(plain, binary=True)], DEFAULT) is None


def test_what_a_reviewer_should_not_overlook_is_told() -> None:
    entries = [
        evolve(entry("run.sh"), status="M", old_mode=0o100644, new_mode=0o100755),
        evolve(entry("new.sh"), new_mode=0o100755),
        evolve(entry("here", "there"), new_mode=0o120000),
        *(evolve(entry(f"{n}.png"), binary=True) for n in range(7)),
        evolve(entry("old.png"), binary=True, status="D", new_mode=0),
    ]
    assert list(remarks(entries)) == [
        "patch: made executable: run.sh",
        "patch: new links: here",
        "patch: binary: 0.png, 1.png, 2.png, 3.png, 4.png and 2 more",
    ]
    assert list(remarks([entry("a")])) == []


def test_too_many_files_and_too_many_bytes_are_refused() -> None:
    rules = PatchRules(max_files=2, max_bytes=10)
    two = [entry("a"), entry("b")]
    assert judge_patch(two, rules, 10) is None
    assert "max_files" in (judge_patch([*two, entry("c")], rules, 1) or "")
    assert "max_bytes" in (judge_patch(two, rules, 11) or "")
