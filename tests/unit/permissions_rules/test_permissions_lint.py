"""What validate says about rules, and the lines that would have allowed a denied call."""

import pytest
import yaml

from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.judge import Allowed, Denied, Policy
from harness_batch.permissions.lint import lint
from harness_batch.permissions.suggest import allowing_lines
from harness_batch.rules import Ask, Rule, rules_from

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


def suggested(policy: Policy, asks: list[Ask]) -> tuple[str, ...]:
    return allowing_lines(policy.judge(asks).rulings)


CALLS = [
    Ask("bash", "git status"),
    Ask("bash", "git status"),
    Ask("bash", "echo 'a: #b\n\"' \u2028"),
    Ask("bash", "sort -uo x y", options=("-uo",)),
    Ask("bash", "$x a", undecidable="why"),
    Ask("edit", "src/a b.py"),
    Ask("external_directory", "/etc/x"),
    Ask("read", ".env"),
    Ask("doom_loop", "bash"),
]


def test_the_suggested_lines_are_yaml_that_allows_the_call() -> None:
    lines = suggested(Policy(DEFAULT_RULES), CALLS)
    declared = yaml.safe_load("\n".join(lines))
    assert list(declared) == ["read", "edit", "bash", "external_directory", "doom_loop"]
    assert next(iter(declared["bash"])) == "*"
    stack = (*DEFAULT_RULES, *rules_from(declared, "recipe:r.yaml"))
    assert isinstance(Policy(stack).judge(CALLS), Allowed)


def test_nothing_is_suggested_for_what_is_allowed_already() -> None:
    asks = [Ask("read", "a"), Ask("edit", "b")]
    assert suggested(Policy(DEFAULT_RULES), asks) == ("edit:", '  "b": allow')


def test_nothing_is_suggested_that_no_rule_can_allow() -> None:
    own = rules_from({"edit": "deny"}, "agent:plan")
    judge = Policy(DEFAULT_RULES, ceiling=own)
    asks = [Ask("edit", "a"), Ask("bash", "git push"), Ask("bash", "git -C x config y")]
    assert isinstance(judge.judge(asks), Denied)
    assert suggested(judge, asks) == ()
    assert suggested(Policy(DEFAULT_RULES, parent=judge), asks[:1]) == ()
    assert suggested(Policy(DEFAULT_RULES), [Ask("edit", ".git/config")]) == ()
