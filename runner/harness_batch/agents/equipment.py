"""Agents, skills and commands of all shelves at once, with every fault of every file."""

from collections.abc import Iterable, Sequence

from harness_batch.agents.commands import load_commands
from harness_batch.agents.door import Declared, load_agents
from harness_batch.agents.record import Equipment
from harness_batch.agents.shelf import Shelf
from harness_batch.agents.skills import load_skills
from harness_batch.errors import Fault, FaultyInput


def equip(shelves: Sequence[Shelf], declared: Iterable[Declared] = ()) -> Equipment:
    """What `shelves` hold, in their order, under what the configuration declares.

    Raises: FaultyInput.
    """
    faults: list[Fault] = []
    warnings: list[Fault] = []
    agents = load_agents(declared, shelves, faults=faults, warn=warnings.append)
    skills = load_skills(shelves, faults, warnings.append)
    commands = load_commands(shelves, faults, warnings.append)
    if faults:
        raise FaultyInput(faults)
    return Equipment(agents=agents, skills=skills, commands=commands, warnings=tuple(warnings))
