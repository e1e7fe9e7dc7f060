"""Bad recipes, each with exactly what the door says of it: tests/golden/recipe/bad_recipes.txt.

A block is a recipe and, behind `>>> `, its faults as `line:column: message`; FOLDER is its folder.
"""

from pathlib import Path

import pytest

from harness_batch.errors import FaultyInput
from harness_batch.recipe.door import open_recipe

TABLE = Path(__file__).parents[2] / "golden" / "recipe" / "bad_recipes.txt"


def _cases() -> list[tuple[str, list[str]]]:
    cases = []
    for block in TABLE.read_text(encoding="utf-8").split("=====\n"):
        lines = block.splitlines(keepends=True)
        told = [line[4:].rstrip("\n") for line in lines if line.startswith(">>> ")]
        cases.append(("".join(line for line in lines if not line.startswith(">>> ")), told))
    return cases


@pytest.mark.parametrize(("text", "told"), _cases())
def test_a_bad_recipe_gives_all_its_faults_with_their_places(
    text: str, told: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FaultyInput) as caught:
        open_recipe(file)
    said = [str(fault).removeprefix(f"{file}:") for fault in caught.value.faults]
    assert [line.replace(str(tmp_path), "FOLDER") for line in said] == told


def test_the_table_is_long() -> None:
    assert len(_cases()) > 90
