"""What validate says about rules."""

import pytest

from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.lint import lint
from harness_batch.rules import Rule, rules_from

Declared = dict[str, str | dict[str, str]]


def findings(declared: Declared) -> list[tuple[str, str]]:
    stack = (*DEFAULT_RULES, *rules_from(dict(declared), "recipe:r.yaml"))
    return [(each.kind, str(each.rule)) for each in lint(stack)]


def test_the_defaults_and_sound_rules_have_no_findings() -> None:
    assert lint(DEFAULT_RULES) == ()
    sound: Declared = {
        "read": "deny",
        "edit": {"src/**": "allow", "src/vendor/**": "deny"},
        "bash": {"pytest -q *": "allow", "git status *": "allow", "python -m pytest *": "allow"},
        "doom_loop": "allow",
        "*": "deny",
    }
    assert [each for each in findings({**sound, "*": "allow"}) if each[0] != "shadowed"] == []


def test_an_ask_is_found_since_nobody_answers() -> None:
    assert findings({"edit": "ask"}) == [("ask", "edit: *: ask")]


@pytest.mark.parametrize(
    ("name", "near"),
    [("bsh", "bash"), ("Edit", "edit"), ("write", "edit"), ("web_fetch", "webfetch")],
)
def test_an_unknown_permission_is_found_with_the_nearest_name(name: str, near: str) -> None:
    (found,) = lint(rules_from({name: "allow"}, "recipe:r.yaml"))
    assert found.kind == "unknown"
    assert f"`{near}`" in found.message


def test_an_unknown_permission_like_nothing_lists_the_known_ones() -> None:
    (found,) = lint(rules_from({"zzzzzz": "allow"}, "recipe:r.yaml"))
    assert "external_directory" in found.message


@pytest.mark.parametrize(
    ("declared", "shadowed"),
    [
        ({"bash": {"git diff *": "deny", "git *": "allow"}}, ["bash: git diff *: deny"]),
        ({"edit": {"src/a": "allow", "src/**": "deny"}}, ["edit: src/a: allow"]),
        ({"edit": {"**/a": "allow", "a": "deny"}}, []),
        ({"edit": "allow", "*": "deny"}, ["edit: *: allow"]),
        ({"edit": {"src/**": "allow", "src/a": "deny"}}, []),
        ({"edit": {"a": "allow", "*": "allow"}}, ["edit: a: allow"]),
        # The first allows an option that the second is too vague for.
        ({"bash": {"ls -R *": "allow", "ls *": "allow"}}, []),
        ({"read": {".env": "allow", "*": "allow"}}, []),
    ],
)
def test_a_rule_that_a_later_one_covers_is_found(declared: Declared, shadowed: list[str]) -> None:
    assert [rule for kind, rule in findings(declared) if kind == "shadowed"] == shadowed


def test_rules_of_another_origin_may_cover() -> None:
    stack = (
        Rule("edit", "src/**", "allow", "config:h.jsonc"),
        Rule("edit", "*", "deny", "recipe:r.yaml:7"),
        Rule("edit", "a", "allow", "recipe:r.yaml:8"),
        Rule("edit", "*", "allow", "recipe:r.yaml:9"),
    )
    assert [each.rule.source for each in lint(stack)] == ["recipe:r.yaml:7", "recipe:r.yaml:8"]


@pytest.mark.parametrize(
    "pattern",
    ["python *", "bash *", "sh -c *", "find *", "git *", "/usr/bin/env *", "npm *", "make*",
     "sed *",
     "xargs *", "node -e *", "tee *", "rg *", "man *", "tar *", "awk *"],
)  # fmt: skip
def test_a_bare_program_that_runs_others_is_found(pattern: str) -> None:
    assert findings({"bash": {pattern: "allow"}}) == [
        ("grants_execution", f"bash: {pattern}: allow")
    ]


@pytest.mark.parametrize(
    ("pattern", "action"),
    [("*", "allow"), ("python *", "deny"), ("python -m pytest *", "allow"), ("git status", "allow"),
     ("ls *", "allow"), ("find src *", "allow"), ("make test", "allow")],
)  # fmt: skip
def test_a_named_command_and_a_deny_are_no_finding(pattern: str, action: str) -> None:
    assert findings({"bash": {pattern: action}}) == []
