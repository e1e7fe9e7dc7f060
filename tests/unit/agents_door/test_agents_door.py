"""The agents door: bundled agents, front matter, and what the configuration lays over them."""

from pathlib import Path

import pytest

from harness_batch.agents.door import agent_schema, load_agents, parse_agent
from harness_batch.config.record import DeclaredAgent
from harness_batch.config.schema import config_schema
from harness_batch.errors import FaultyInput
from harness_batch.rules import Rule

GOOD = """---
description: Writes documents.
mode: primary
model: anthropic/claude
temperature: 0.2
steps: 7
permissions:
  "*": deny
  edit: {"docs/**": allow, "docs/old/**": deny}
---

Write.

---
And rewrite.
"""


def test_the_four_bundled_agents_are_there() -> None:
    agents = load_agents()
    assert sorted(agents) == ["build", "explore", "plan", "review"]
    for name, agent in agents.items():
        assert agent.name == name
        assert agent.description
        assert len(agent.prompt) > 500
        assert agent.steps is None
        assert agent.model is None


@pytest.mark.parametrize("name", ["explore", "plan", "review"])
def test_readers_deny_all_but_reading(name: str) -> None:
    rules = load_agents()[name].rules
    assert rules[0] == Rule("*", "*", "deny", f"agent:{name}")
    assert {rule.permission for rule in rules[1:]} == {"read", "glob", "grep", "todo"}


def test_build_restricts_nothing() -> None:
    assert load_agents()["build"].rules == ()


def test_front_matter_gives_the_record() -> None:
    agent = parse_agent(GOOD.replace("\n", "\r\n"), "doc")
    assert (agent.name, agent.mode, agent.model) == ("doc", "primary", "anthropic/claude")
    assert (agent.temperature, agent.steps) == (0.2, 7)
    assert agent.prompt == "Write.\n\n---\nAnd rewrite."
    assert agent.rules == (
        Rule("*", "*", "deny", "agent:doc"),
        Rule("edit", "docs/**", "allow", "agent:doc"),
        Rule("edit", "docs/old/**", "deny", "agent:doc"),
    )


def test_words_of_yaml_1_1_stay_words() -> None:
    text = '---\ndescription: "on"\npermissions: {bash: {on: deny, no: deny}}\n---\nx'
    assert [rule.pattern for rule in parse_agent(text, "a").rules] == ["on", "no"]


def head(text: str) -> str:
    return f"---\n{text}\n---\nPrompt.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Just text", "a.md:1:1: must begin with a head"),
        ("---\ndescription: x\n", "a.md:1:1: must begin with a head"),
        (
            head("descriptions: x"),
            "a.md:2:1: unknown key `descriptions`; did you mean `description`?",
        ),
        (head("mode: both"), "a.md:2:1: `mode` must be primary, subagent or all, not the text"),
        (head("steps: 0"), "`steps` must be at least 1, not 0"),
        (head("steps: 08"), '`steps` must be a whole number, not the text "08"'),
        (head("model: claude"), "`model` must be PROVIDER/MODEL"),
        (
            head("permissions:\n  bash: perhaps"),
            "a.md:3:3: `permissions.bash` must be allow, deny or ask",
        ),
        (head("permissions:\n  bsh: deny"), "a.md:3:3: unknown permission `bsh`"),
        (head("permissions: deny"), '`permissions` must be a mapping, not the text "deny"'),
        (head("mode: all\nmode: all"), "a.md:3:1: the key 'mode' is there twice"),
        (head("a: &x 1\nb: *x"), "a.md:3:4: is not YAML: aliases are not allowed"),
        (head("a: !!python/name:os.system x"), "is not allowed"),
        (head("a: !!int x"), "is not YAML"),
        (head("- a"), "the head must be a mapping"),
        (head("a: [1"), "is not YAML"),
        (head("1: x"), "keys must be plain words"),
        (head("description: " + "[" * 5000), "is not YAML"),
        ("---\ndescription: x\n---\n", "a.md: has no prompt"),
        ("---\n---\n" + "x" * 200_001, "is longer than"),
    ],
)
def test_bad_files_say_what_and_where(text: str, expected: str) -> None:
    with pytest.raises(FaultyInput) as caught:
        parse_agent(text, "a")
    assert expected in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(FaultyInput) as caught:
        parse_agent("---\nmode: x\nsteps: -1\nfoo: 1\n---\n", "a", file=Path("/x/a.md"))
    assert [fault.line for fault in caught.value.faults] == [2, 3, 4, 0]
    assert {fault.file for fault in caught.value.faults} == {Path("/x/a.md")}


def test_the_configuration_changes_only_what_it_says() -> None:
    bundled = load_agents()
    rule = Rule("bash", "*", "deny", "agent:build")
    agents = load_agents(
        (
            DeclaredAgent(name="build", model="a/b", rules=(rule,)),
            DeclaredAgent(name="doc", prompt="Write.", steps=3),
        )
    )
    assert agents["build"].model == "a/b"
    assert agents["build"].prompt == bundled["build"].prompt
    assert agents["build"].rules == (rule,)
    assert (agents["doc"].prompt, agents["doc"].steps, agents["doc"].mode) == ("Write.", 3, "all")
    assert load_agents() == bundled


def test_front_matter_and_configuration_know_the_same_keys() -> None:
    declared = config_schema()["$defs"]["agent"]["properties"]
    assert set(agent_schema()["properties"]) == set(declared) - {"prompt"}
