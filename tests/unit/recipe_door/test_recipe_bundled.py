"""The bundled recipes: found, valid, and what they demonstrate is true."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_batch.errors import UsageError
from harness_batch.recipe.door import open_recipe
from harness_batch.recipe.places import bundled_recipes, find_recipe, sample_project
from harness_batch.recipe.schema import recipe_schema
from harness_batch.recipe.yaml_text import read_yaml

BUNDLED = ("fix-failing-test", "nightly-refactor", "review-pr")


def test_the_bundled_recipes_are_found_by_name() -> None:
    assert tuple(sorted(bundled_recipes())) == BUNDLED


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_recipe_loads_without_a_warning_and_renders(name: str) -> None:
    source = open_recipe(bundled_recipes()[name])
    assert source.warnings == ()
    assert source.name == name
    row = {axis: "invoice" for axis in source.matrix or {} if axis != "exclude"}
    recipe = source.rendered({**source.values({}), **row})
    assert recipe.models == (f"scripted/{source.folder}/scripts/{name}.yaml",)
    assert recipe.prompt
    assert recipe.title


@pytest.mark.parametrize("name", BUNDLED)
def test_a_script_is_a_list_of_replies(name: str) -> None:
    file = bundled_recipes()[name].parent / "scripts" / f"{name}.yaml"
    steps = read_yaml(file.read_text(), file).value
    assert steps[-1]["text"] or steps[-1]["calls"][0]["name"] == "final_output"
    for step in steps:
        assert set(step) <= {"text", "calls"}
        for call in step.get("calls", ()):
            assert set(call) == {"name", "arguments"}


def unittest_passes(folder: Path) -> bool:
    command = [sys.executable, "-I", "-m", "unittest", "discover", "-s", ".", "-t", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def test_the_samples_test_fails_until_the_scripted_edit_is_made(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(sample_project(), project)
    assert not unittest_passes(project)
    file = bundled_recipes()["fix-failing-test"].parent / "scripts" / "fix-failing-test.yaml"
    calls = [c for s in read_yaml(file.read_text(), file).value for c in s.get("calls", ())]
    (edit,) = [call["arguments"] for call in calls if call["name"] == "edit"]
    mended = project / edit["file_path"]
    before = mended.read_text()
    assert before.count(edit["old_string"]) == 1
    mended.write_text(before.replace(edit["old_string"], edit["new_string"]))
    assert unittest_passes(project)


def test_a_path_goes_before_a_bundled_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_recipe("review-pr", tmp_path) == bundled_recipes()["review-pr"]
    (tmp_path / "review-pr").write_text("prompt: a")
    assert find_recipe("review-pr", tmp_path) == tmp_path / "review-pr"
    monkeypatch.chdir(tmp_path)
    assert find_recipe("review-pr", tmp_path) == Path("review-pr")


def test_an_unknown_word_lists_what_is_bundled(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_recipe("nope", tmp_path)
    assert str(caught.value) == (
        "no recipe `nope`: no such file, and bundled are: "
        "fix-failing-test, nightly-refactor, review-pr"
    )


def test_every_key_of_the_schema_is_described() -> None:
    def undescribed(schema: object, trail: str) -> list[str]:
        if isinstance(schema, list):
            return [found for inner in schema for found in undescribed(inner, trail)]
        if not isinstance(schema, dict):
            return []
        found = [
            f"{trail}.{key}"
            for key, inner in schema.get("properties", {}).items()
            if "description" not in inner
        ]
        return found + [
            f for k, inner in schema.items() for f in undescribed(inner, f"{trail}.{k}")
        ]

    assert undescribed(recipe_schema(), "") == []
