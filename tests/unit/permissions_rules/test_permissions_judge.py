"""The verdict: last match wins, nobody answers, ceilings hold, secrets stay shut."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.permissions.defaults import DEFAULT_RULES, SECRET_HOMES
from harness_batch.permissions.judge import Allowed, Denied, Policy
from harness_batch.permissions.paths import path_asks
from harness_batch.rules import PERMISSIONS, Action, Ask, Rule, rules_from

Declared = dict[str, str | dict[str, str]]


def rules(declared: Declared, source: str = "recipe:r.yaml") -> tuple[Rule, ...]:
    return rules_from(dict(declared), source)


def policy(declared: Declared, **more: object) -> Policy:
    return Policy((*DEFAULT_RULES, *rules(declared)), **more)  # type: ignore[arg-type]


def test_the_last_match_wins() -> None:
    judge = policy({"edit": {"src/**": "allow", "src/vendor/**": "deny"}})
    assert judge.allows(Ask("edit", "src/a.py"))
    assert not judge.allows(Ask("edit", "src/vendor/a.py"))
    turned = policy({"edit": {"src/vendor/**": "deny", "src/**": "allow"}})
    assert turned.allows(Ask("edit", "src/vendor/a.py"))


def test_without_a_rule_only_looking_at_the_workspace_is_allowed() -> None:
    judge = Policy(DEFAULT_RULES)
    open_by_default = {p for p in PERMISSIONS if judge.allows(Ask(p, "x"))}
    assert open_by_default == {"read", "glob", "grep", "todo"}
    assert {p for p in PERMISSIONS if judge.can_allow(p)} == open_by_default


def test_nobody_answers_an_ask() -> None:
    verdict = policy({"bash": {"*": "allow", "rm *": "ask"}}).judge([Ask("bash", "rm x")])
    assert isinstance(verdict, Denied)
    assert "nobody is there to answer" in verdict.message


def test_a_call_runs_only_when_all_of_its_asks_are_allowed() -> None:
    judge = policy({"bash": {"ls *": "allow"}, "edit": {"out": "allow"}})
    assert isinstance(judge.judge([Ask("bash", "ls"), Ask("edit", "out")]), Allowed)
    verdict = judge.judge([Ask("bash", "ls"), Ask("edit", "in")])
    assert isinstance(verdict, Denied)
    assert [ruling.action for ruling in verdict.rulings] == ["allow", "deny"]


def test_a_call_that_asks_for_nothing_is_not_allowed() -> None:
    assert isinstance(policy({"*": "allow"}).judge([]), Denied)


def test_a_denial_quotes_the_rule_its_source_and_what_is_open() -> None:
    judge = policy({"bash": {"pytest *": "allow", "rm *": "deny"}})
    verdict = judge.judge([Ask("bash", "rm -rf x")])
    assert isinstance(verdict, Denied)
    for words in ("`rm -rf x`", "`bash: rm *: deny`", "recipe:r.yaml", "`pytest *`", "Do not"):
        assert words in verdict.message
    unmatched = judge.judge([Ask("edit", "a")])
    assert isinstance(unmatched, Denied)
    assert "No rule allows it" in unmatched.message
    assert "Nothing is allowed for edit" in unmatched.message


def test_a_huge_pattern_is_cut_in_the_message() -> None:
    verdict = policy({}).judge([Ask("bash", "x\n" * 50_000)])
    assert isinstance(verdict, Denied)
    assert len(verdict.message) < 1_000


def test_permission_names_may_hold_wildcards() -> None:
    judge = policy({"*": "allow", "web*": "deny"})
    assert judge.allows(Ask("bash", "ls"))
    assert not judge.allows(Ask("webfetch", "https://x"))


def test_an_agents_own_deny_is_lifted_by_nobody() -> None:
    own = rules({"edit": "deny", "bash": {"*": "deny", "git log *": "allow"}}, "agent:plan")
    judge = Policy(
        (*DEFAULT_RULES, *own, *rules({"edit": "allow", "bash": "allow"}, "cli")), ceiling=own
    )
    assert judge.allows(Ask("bash", "git log -1"))
    assert not judge.allows(Ask("bash", "git diff"))
    assert not judge.allows(Ask("bash", "git log --output=x", options=("--output",)))
    verdict = judge.judge([Ask("edit", "a")])
    assert isinstance(verdict, Denied)
    assert verdict.rulings[0].by == "agent"
    assert "the agent's own rule `edit: *: deny`" in verdict.message
    assert not judge.can_allow("edit")
    assert judge.can_allow("bash")


def test_a_child_may_do_what_its_parent_may_and_no_more() -> None:
    parent = policy({"bash": {"*": "allow", "rm *": "deny"}})
    child = policy({"bash": "allow", "edit": "allow"}, parent=parent)
    assert child.allows(Ask("bash", "ls"))
    assert not child.allows(Ask("bash", "rm x"))
    assert not child.can_allow("edit")
    verdict = child.judge([Ask("bash", "rm x")])
    assert isinstance(verdict, Denied)
    assert verdict.rulings[0].by == "parent"
    assert "the session that started this one" in verdict.message


def test_what_cannot_be_told_is_allowed_only_by_exactly_everything() -> None:
    ask = Ask("bash", "$x a", undecidable="`$x` is known only when it runs")
    assert not policy({"bash": {"$x *": "allow", "**": "allow"}}).allows(ask)
    assert policy({"bash": "allow"}).allows(ask)
    assert policy({"bash": {"*": "allow", "git *": "allow"}}).allows(ask)
    assert not policy({"bash": {"*": "allow", "$x *": "deny"}}).allows(ask)
    verdict = policy({"bash": {"$x *": "allow"}}).judge([ask])
    assert isinstance(verdict, Denied)
    assert "only a rule for exactly `*`" in verdict.message


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        ("find *", False),
        ("find . *", False),
        ("* -*", False),
        ("find * -exec*", False),
        ("find * -delete", False),
        ("find * -exec * -delete", True),
        ("find * -ex* * -delete", True),
        ("find . -exec a ; -delete", True),
        ("*", True),
    ],
)
def test_options_that_execute_must_be_named(pattern: str, allowed: bool) -> None:
    ask = Ask("bash", "find . -exec a ; -delete", options=("-exec", "-delete"))
    assert policy({"bash": {pattern: "allow"}}).allows(ask) is allowed


def test_a_denial_for_an_option_names_the_option() -> None:
    verdict = policy({"bash": {"sort *": "allow"}}).judge(
        [Ask("bash", "sort -o x y", options=("-o",))]
    )
    assert isinstance(verdict, Denied)
    assert "no rule names `-o`" in verdict.message


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env", "prod.env", ".env.local", ".ENV", "x/.Env.Prod", "key.pem", "id_rsa",
     "deep/id_ed25519", ".netrc", ".aws/credentials", "x/credentials.json", "ID_RSA"],
)  # fmt: skip
def test_secret_files_are_not_read_by_default(path: str) -> None:
    assert not Policy(DEFAULT_RULES).allows(Ask("read", path))
    for sweeping in ("*", "**", "**/*", "a/**", "x/*", "*.*", ".*", "?*"):
        assert not policy({"read": {sweeping: "allow"}}).allows(Ask("read", path))


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".env", ".env"),
        ("a/.env", "**/.env"),
        ("a/prod.env", "a/*.env"),
        (".env.local", ".env.*"),
        ("keys/test.pem", "keys/*.pem"),
        ("id_rsa", "id_rsa"),
        (".aws/credentials", ".aws/**"),
    ],
)
def test_secret_files_are_reopened_by_a_pattern_that_names_them(path: str, pattern: str) -> None:
    assert policy({"read": {pattern: "allow"}}).allows(Ask("read", path))
    assert not policy({"read": {pattern: "allow", path: "deny"}}).allows(Ask("read", path))


@pytest.mark.parametrize("home", SECRET_HOMES)
@pytest.mark.parametrize("below", ["", "/x", "/a/b.txt"])
def test_a_rule_that_opens_the_outside_does_not_open_homes_of_secrets(
    home: str, below: str
) -> None:
    ask = Ask("external_directory", f"/home/me/{home}{below}")
    loud = Ask("external_directory", f"/home/me/{home}{below}".upper())
    for sweeping in ("*", "/**", "/home/**", "/home/me/**", "/home/me/*"):
        open_wide = policy({"external_directory": {sweeping: "allow"}, "*": "allow"})
        assert not open_wide.allows(ask)
        assert not open_wide.allows(loud)
    named = policy({"external_directory": {f"/home/me/{home}": "allow", f"**/{home}/**": "allow"}})
    assert named.allows(ask)
    assert policy({"external_directory": "allow"}).allows(Ask("external_directory", "/home/me/x"))


@pytest.mark.parametrize("path", [".harness/runs/run_1/events.jsonl", "a/.harness/history.duckdb"])
def test_the_runners_own_records_are_edited_only_by_name(path: str) -> None:
    assert not policy({"edit": "allow"}).allows(Ask("edit", path))
    assert policy({"edit": {path: "allow"}}).allows(Ask("edit", path))
    assert policy({"edit": "allow"}).allows(Ask("edit", ".harness/agents/mine.md"))


@pytest.mark.parametrize("path", [".env.example", "a/.env.example", "env.py", "src/key.py", "a.b"])
def test_what_only_looks_like_a_secret_is_read(path: str) -> None:
    assert Policy(DEFAULT_RULES).allows(Ask("read", path))


def test_a_denied_path_is_denied_whatever_its_case_and_an_allowed_one_is_exact() -> None:
    judge = policy({"edit": {"*": "allow", "secret/**": "deny"}})
    assert not judge.allows(Ask("edit", "SECRET/x"))
    assert not policy({"edit": {"src/**": "allow"}}).allows(Ask("edit", "SRC/x"))


@pytest.mark.parametrize("written", ["b", "./a/../b", "a/./../b", "../w/b", "//w/b", "a/../a/../b"])
def test_every_spelling_of_a_path_is_judged_alike(written: str, tmp_path: Path) -> None:
    root = tmp_path.resolve() / "w"
    (root / "a").mkdir(parents=True)
    path = root / written if not written.startswith("//") else root / "b"
    asks = path_asks("edit", path.resolve(), root)
    assert asks == (Ask("edit", "b"),)


def test_a_path_outside_needs_external_directory_too(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    assert path_asks("read", root, root) == (Ask("read", "."),)
    assert path_asks("read", Path("/etc/passwd"), root) == (
        Ask("read", "/etc/passwd"),
        Ask("external_directory", "/etc/passwd"),
    )
    assert isinstance(policy({}).judge(path_asks("read", Path("/etc/passwd"), root)), Denied)


def test_a_loop_of_calls_counts_only_when_it_is_named() -> None:
    ask = Ask("doom_loop", "bash")
    assert not policy({"*": "allow"}).allows(ask)
    assert policy({"doom_loop": "allow"}).allows(ask)
    assert policy({"doom_loop": {"bash": "allow"}}).allows(ask)
    assert not policy({"doom_loop": {"read": "allow"}}).allows(ask)


def test_a_harmless_wrapper_needs_no_rule_but_a_deny_that_names_it_holds() -> None:
    asks = [Ask("bash", "pytest"), Ask("bash", "timeout 5 pytest", passing=True)]
    assert isinstance(policy({"bash": {"*": "deny", "pytest *": "allow"}}).judge(asks), Allowed)
    assert isinstance(policy({"bash": {"*": "allow", "timeout *": "deny"}}).judge(asks), Denied)
    assert isinstance(policy({"bash": {"ls *": "allow"}}).judge(asks[1:]), Denied)
    buried = policy({"bash": {"timeout *": "deny", "*": "deny", "pytest *": "allow"}})
    assert isinstance(buried.judge(asks), Denied)


@pytest.mark.parametrize(
    ("declared", "visible"),
    [
        ({"edit": "deny"}, False),
        ({"edit": {"src/**": "allow"}}, True),
        ({"edit": {"src/**": "allow", "*": "deny"}}, False),
        ({"edit": {"src/**": "allow", "src/a/**": "deny"}}, True),
        ({"edit": {"src/a": "allow", "src/**": "deny"}}, False),
        ({"edit": "ask"}, False),
        ({"ed*": "allow"}, True),
    ],
)
def test_a_tool_is_hidden_only_when_nothing_can_be_allowed(
    declared: Declared, visible: bool
) -> None:
    assert policy(declared).can_allow("edit") is visible


PATTERNS = st.sampled_from(
    ["*", "a", "a *", "* b", "a b", "src/*", "**/x", ".env", "-x", "a -x*", "?", "**"]
)
TEXTS = st.sampled_from(["a", "a b", "src/x", ".env", "a -x", "b", "SRC/X", ""])
ACTIONS: st.SearchStrategy[Action] = st.sampled_from(["allow", "deny", "ask"])
NAMES = st.sampled_from(["bash", "read", "edit", "*", "e*"])
RULES = st.builds(Rule, NAMES, PATTERNS, ACTIONS, st.just("recipe:x"))
STACKS = st.lists(RULES, max_size=6).map(lambda each: (*DEFAULT_RULES, *each))
ASKS = st.builds(
    Ask,
    st.sampled_from(["bash", "read", "edit"]),
    TEXTS,
    st.sampled_from([None, None, "why"]),
    st.sampled_from([(), (), ("-x",)]),
    st.sampled_from([False, False, True]),
)
CALLS = st.lists(ASKS, max_size=3)


def allowed(judge: Policy, asks: list[Ask]) -> bool:
    return isinstance(judge.judge(asks), Allowed)


@settings(deadline=None)
@given(STACKS, CALLS)
def test_nothing_is_allowed_that_no_rule_allows(stack: tuple[Rule, ...], asks: list[Ask]) -> None:
    verdict = Policy(stack).judge(asks)
    if isinstance(verdict, Allowed):
        assert verdict.rulings
        assert all(r.rule is not None and r.rule.action == "allow" for r in verdict.rulings)
        counted = {ruling.ask for ruling in verdict.rulings}
        assert all(ask in counted or ask.passing for ask in asks)


@settings(deadline=None)
@given(STACKS, CALLS, RULES)
def test_one_more_deny_never_allows_more(
    stack: tuple[Rule, ...], asks: list[Ask], last: Rule
) -> None:
    deny = Rule(last.permission, last.pattern, "deny", last.source)
    if allowed(Policy((*stack, deny)), asks):
        assert allowed(Policy(stack), asks)


@settings(deadline=None)
@given(STACKS, CALLS, RULES)
def test_one_more_allow_never_denies_more(
    stack: tuple[Rule, ...], asks: list[Ask], last: Rule
) -> None:
    allow = Rule(last.permission, last.pattern, "allow", last.source)
    if allowed(Policy(stack), asks):
        assert allowed(Policy((*stack, allow)), asks)


@settings(deadline=None)
@given(STACKS, STACKS, STACKS, CALLS)
def test_neither_a_parent_nor_a_ceiling_ever_widens(
    stack: tuple[Rule, ...], parent: tuple[Rule, ...], ceiling: tuple[Rule, ...], asks: list[Ask]
) -> None:
    if allowed(Policy(stack, parent=Policy(parent)), asks):
        assert allowed(Policy(stack), asks)
        assert all(Policy(parent).allows(ask) for ask in asks if not ask.passing)
    if allowed(Policy(stack, ceiling=ceiling), asks):
        assert allowed(Policy(stack), asks)


@settings(deadline=None)
@given(STACKS, STACKS, ASKS)
def test_a_hidden_tool_has_no_input_that_is_allowed(
    stack: tuple[Rule, ...], ceiling: tuple[Rule, ...], ask: Ask
) -> None:
    judge = Policy(stack, ceiling=ceiling)
    if not judge.can_allow(ask.permission):
        assert not judge.allows(ask)
