"""Recorded decisions judged again: the least rules for what was used, and other rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.judge import Policy
from harness_batch.permissions.recorded import (
    DecidedCall,
    Decision,
    Policies,
    ask_again,
    retried,
    suggestions,
)
from harness_batch.rules import Rule, rules_from


def call(*asked: tuple[str, str], action: str = "allow", recipe: str = "fix") -> DecidedCall:
    return DecidedCall(
        tool_call_id="tcl", run_id="run", session_id="ses", recipe=recipe, item_key=f"{recipe}/x=1",
        tool="bash",
        decisions=tuple(
            Decision(permission=permission, pattern=pattern,
                     action="deny" if action == "deny" else "allow",
                     rule="bash: *: allow", source="cli")
            for permission, pattern in asked
        ),
    )  # fmt: skip


def declared(**rules: object) -> Policy:
    return Policy((*DEFAULT_RULES, *rules_from(rules, "recipe:r.yaml:3")))


def lines(*calls: DecidedCall) -> list[str]:
    (found,) = suggestions(calls)
    assert found.not_by_rules == ()
    return [f"{rule.permission} {rule.pattern}" for rule in found.rules]


def test_what_was_used_is_allowed_and_nothing_more() -> None:
    calls = (
        call(("bash", "pytest -q"), ("bash", "ls src")),
        call(("edit", "src/a.py")), call(("edit", "src/a.py")), call(("read", "src/a.py")),
        call(("bash", "rm -rf /"), action="deny"),
    )  # fmt: skip
    assert lines(*calls) == ["bash ls src", "bash pytest -q", "edit src/a.py"]


@pytest.mark.parametrize(
    ("permission", "pattern", "rule"),
    [
        ("read", "config/.env", "config/.env"),
        ("bash", "rg -l 'a*' src", "rg -l 'a?' src"),
        ("bash", "git log --output=x", "git log --output=x"),
        ("webfetch", "https://docs.python.org/3/", "https://docs.python.org/3/"),
        ("external_directory", "/tmp/x", "/tmp/x"),
        ("doom_loop", "bash", "bash"),
        ("mcp", "files_read", "files_read"),
    ],
)
def test_a_line_allows_exactly_what_was_asked(permission: str, pattern: str, rule: str) -> None:
    assert lines(call((permission, pattern))) == [f"{permission} {rule}"]


def test_what_cannot_be_told_in_advance_needs_the_asterisk_and_says_so() -> None:
    (found,) = suggestions([call(("bash", "$(cat x)"), ("bash", "ls"))])
    assert [str(rule) for rule in found.rules] == ["bash: *: allow"]
    assert found.because["bash"].startswith("`$(cat x)`: ")


def test_recipes_are_told_apart() -> None:
    found = suggestions([call(("edit", "a")), call(("edit", "b"), recipe="other")])
    assert [(one.recipe, [rule.pattern for rule in one.rules]) for one in found] == [
        ("fix", ["a"]),
        ("other", ["b"]),
    ]


COMMANDS = st.sampled_from(
    ["pytest -q", "ls", "git diff --stat", "find . -name '*.py'", "echo $HOME", "make test",
     "sed -i s/a/b/ x", "python -c 'print(1)'", "cat a?b", "env X=1 ls", "xargs rm"]
)  # fmt: skip
PATHS = st.sampled_from(["src/a.py", "a b.txt", "*.md", ".env", "x/[1].py", "ü.txt"])
ASKS = st.one_of(
    st.tuples(st.just("bash"), COMMANDS),
    st.tuples(st.sampled_from(["read", "edit", "glob", "grep", "external_directory"]), PATHS),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ASKS, min_size=1, max_size=8))
def test_the_suggested_rules_always_suffice(asked: list[tuple[str, str]]) -> None:
    (found,) = suggestions([call(one) for one in asked])
    policy = Policy((*DEFAULT_RULES, *found.rules))
    left = set(found.not_by_rules)
    for permission, pattern in asked:
        ask = ask_again(permission, pattern)
        assert policy.allows(ask) or ask in left, ask
    assert not left


def test_other_rules_change_what_they_change() -> None:
    calls = [
        call(("bash", "pytest -q")), call(("bash", "pytest -q")), call(("edit", "src/a.py")),
        call(("bash", "git commit"), action="deny"), call(("bash", "pytest -q"), recipe="other"),
    ]  # fmt: skip
    policy = declared(bash={"git commit": "allow"}, edit={"src/*": "allow"})
    result = retried(calls, Policies(by_item={}, other=policy, recipe="fix"))
    assert (result.calls, result.unchanged, result.not_judged) == (5, 1, 1)
    assert [(c.now, c.ask.pattern, c.calls, c.rule and c.rule.source) for c in result.changed] == [
        ("deny", "pytest -q", 2, None),
        ("allow", "git commit", 1, "recipe:r.yaml:3"),
    ]
    assert result.changed[0].before == "bash: *: allow (cli)"


def test_an_item_is_judged_by_its_own_rules() -> None:
    strict, open_ = declared(), declared(edit="allow")
    policies = Policies(by_item={"fix/x=1": open_}, other=strict)
    assert retried([call(("edit", "a"))], policies).unchanged == 1
    assert retried([call(("edit", "a"), recipe="other")], policies).changed[0].now == "deny"


def test_an_agents_own_denial_is_named() -> None:
    agent = (Rule("edit", "*", "deny", "agent:plan"),)
    policy = Policy((*DEFAULT_RULES, Rule("edit", "*", "allow", "cli")), agent)
    (change,) = retried([call(("edit", "a"))], Policies(by_item={}, other=policy)).changed
    assert (change.by, change.rule) == ("agent", agent[0])
