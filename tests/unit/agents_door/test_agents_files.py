"""Agents as files: whose they are, what they may say, and which bundled ones stay as they are."""

from pathlib import Path

import pytest

from harness_batch.agents.door import load_agents
from harness_batch.agents.record import Agent
from harness_batch.config.record import DeclaredAgent
from harness_batch.errors import Fault, FaultyInput
from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.judge import Policy
from harness_batch.rules import Ask, Rule
from memory_shelf import MemoryShelf

READERS = ("explore", "plan", "review")
EVERYTHING = Rule("*", "*", "allow", "recipe")
ASKS = (
    Ask("read", "a.py"),
    Ask("edit", "a.py"),
    Ask("bash", "ls"),
    Ask("webfetch", "https://h.example/"),
    Ask("skill", "x"),
    Ask("task", "build"),
)


def agent_text(permissions: str = "{}", **head: object) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in head.items())
    return f"---\n{lines}permissions: {permissions}\n---\nDo.\n"


def policy_of(agent: Agent, *later: Rule) -> Policy:
    return Policy((*DEFAULT_RULES, *agent.granted, *later), agent.rules)


def allowed(agent: Agent, *later: Rule) -> set[str]:
    policy = policy_of(agent, *later)
    return {ask.permission for ask in ASKS if policy.allows(ask)}


def test_a_file_of_the_user_takes_the_place_of_a_bundled_agent() -> None:
    text = agent_text('{bash: {"make *": allow}}', description="Mine", mode="primary")
    agent = load_agents(shelves=[MemoryShelf({"agents/build.md": text})])["build"]
    assert (agent.description, agent.mode, agent.prompt) == ("Mine", "primary", "Do.")
    assert agent.granted == (Rule("bash", "make *", "allow", "agent:build"),)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("widening", ['{"*": allow}', "{edit: allow}", '{"e*": allow}'])
def test_bundled_readers_stay_readers_whoever_redefines_them(name: str, widening: str) -> None:
    told: list[Fault] = []
    shelf = MemoryShelf({f"agents/{name}.md": agent_text(widening)})
    declared = DeclaredAgent(name=name, rules=(Rule("*", "*", "allow", f"agent:{name}"),))
    for agents in (
        load_agents(shelves=[shelf], warn=told.append),
        load_agents([declared], warn=told.append),
        load_agents([declared], [shelf], warn=told.append),
    ):
        assert allowed(agents[name], EVERYTHING) == {"read"}
    assert len(told) == 4
    assert f"the bundled agent {name!r} stays read-only" in told[0].message


def test_a_reader_may_be_restricted_further() -> None:
    shelf = MemoryShelf({"agents/plan.md": agent_text("{read: {secret/*: deny}}")})
    policy = policy_of(load_agents(shelves=[shelf])["plan"], EVERYTHING)
    assert policy.allows(Ask("read", "a"))
    assert not policy.allows(Ask("read", "secret/a"))


def test_an_agent_of_an_untrusted_file_restricts_and_never_grants() -> None:
    told: list[Fault] = []
    text = agent_text('{"*": deny, read: allow, bash: allow}', steps=400)
    shelf = MemoryShelf({"agents/mine.md": text}, trusted=False)
    agent = load_agents(shelves=[shelf], warn=told.append)["mine"]
    assert allowed(agent) == {"read"}
    assert allowed(agent, EVERYTHING) == {"read", "bash"}  # the recipe's grant, not the agent's
    assert agent.steps is None
    assert [fault.message.split(":")[0] for fault in told] == [
        "the rule 'bash",
        "400 steps, more than the default, is ignored",
    ]


def test_an_untrusted_allow_does_not_undo_a_deny_of_the_user() -> None:
    shelf = MemoryShelf({"agents/mine.md": agent_text("{read: allow}")}, trusted=False)
    agent = load_agents(shelves=[shelf])["mine"]
    mine = Rule("read", "private/*", "deny", "config")
    policy = Policy((*DEFAULT_RULES, mine, *agent.granted), agent.rules)
    assert not policy.allows(Ask("read", "private/a"))


@pytest.mark.parametrize("name", ["build", "plan", "yours", "declared"])
def test_an_untrusted_file_takes_nobodys_place(name: str) -> None:
    told: list[Fault] = []
    yours = MemoryShelf({"agents/yours.md": agent_text(description="Yours")})
    theirs = MemoryShelf({f"agents/{name}.md": agent_text(description="Theirs")}, trusted=False)
    declared = [DeclaredAgent(name="declared", description="Declared")]
    agents = load_agents(declared, [yours, theirs], warn=told.append)
    assert agents == load_agents(declared, [yours])
    assert f"new definition of agent {name!r} is ignored" in told[0].message


def test_a_trusted_repository_wins_over_the_user() -> None:
    shelves = [
        MemoryShelf({"agents/a.md": agent_text("{edit: deny}")}),
        MemoryShelf({"agents/a.md": agent_text("{bash: allow}")}),
    ]
    assert load_agents(shelves=shelves)["a"].granted == (Rule("bash", "*", "allow", "agent:a"),)


def test_all_faults_of_all_files_are_told_with_their_places() -> None:
    shelf = MemoryShelf(
        {
            "agents/a.md": "---\nmodes: primary\nsteps: 0\n---\nx",
            "agents/b.md": "no head",
            "agents/c.md": OSError(13, "Permission denied"),
            "agents/d.md": b"---\n---\n\n\xff",
            "agents/e.md": "---\n---\n" + "x" * 300_000,
            "agents/f.md": "---\npermissions: {bsah: allow}\n---\nx\0",
            "agents/ g.md": agent_text(),
            "agents/h\u202e.md": agent_text(),
            "agents/deep/i.md": "not looked at",
            "agents/readme.txt": "not looked at",
        },
        trusted=False,
    )
    with pytest.raises(FaultyInput) as caught:
        load_agents(shelves=[shelf])
    told = [str(fault).removeprefix("/shelf/agents/") for fault in caught.value.faults]
    assert [line.split(":")[0] for line in told] == [
        " g.md", "a.md", "a.md", "b.md", "c.md", "d.md", "e.md", "f.md", "h\u202e.md",
    ]  # fmt: skip
    assert any(line.startswith("a.md:2:1: ") for line in told)
    assert any(line.startswith("d.md:4:1: is not UTF-8") for line in told)
    assert any("Permission denied" in line for line in told)
    assert any("is larger than" in line for line in told)


def test_there_is_an_end_to_how_many_are_taken() -> None:
    shelf = MemoryShelf({f"agents/a{n}.md": agent_text() for n in range(101)})
    with pytest.raises(FaultyInput, match="holds 101 agents, at most 100"):
        load_agents(shelves=[shelf])


def test_a_folder_on_disk_is_read_with_its_links_but_no_fifo(tmp_path: Path) -> None:
    import os

    from harness_batch.agents.shelf import DiskShelf

    (tmp_path / "agents").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "SKILL.md").write_text("x")
    (tmp_path / "agents" / "a.md").write_text(agent_text())
    os.mkfifo(tmp_path / "agents" / "b.md")
    (tmp_path / "agents" / "c.md").symlink_to("gone.md")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "s").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "skills" / "loop").symlink_to(tmp_path / "skills")
    shelf = DiskShelf(tmp_path)
    assert shelf.names("agents") == ["agents/a.md"]
    assert "skills/s/SKILL.md" in shelf.names("skills")
    assert len(shelf.names("skills")) < 20
    assert DiskShelf(tmp_path / "none").names("agents") == []
