"""Sub-recipes at the door: what is refused, what is warned of, and what becomes of the rest."""

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from harness_batch.errors import FaultyInput
from harness_batch.recipe.door import RecipeSource, open_recipe
from harness_batch.recipe.sub_recipes import TOOL_NAMES
from harness_batch.tools.table import bundled_tools

Json = dict[str, Any]
PACKAGE = {
    "key": "package",
    "input_type": "string",
    "requirement": "required",
    "description": "Which.",
}


def opened(folder: Path, entry: Json, below: Json, above: Json | None = None) -> RecipeSource:
    documents = {
        "main.json": {"prompt": "Go.", "sub_recipes": [entry], **(above or {})},
        "b.json": {"prompt": "b", **below},
        "c.json": {"prompt": "c", "sub_recipes": [{"name": "d", "path": "d.json"}]},
        "d.json": {"prompt": "d"},
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return open_recipe(folder / "main.json")


FAULTY: dict[str, tuple[Json, Json, str]] = {
    "missing": ({"name": "a", "path": "none.yaml"}, {}, "there is no recipe `none.yaml` in"),
    "reserved": ({"name": "bash", "path": "b.json"}, {}, "`bash` is a tool already"),
    "name": ({"name": "a b", "path": "b.json"}, {}, "becomes a tool's name"),
    "itself": ({"name": "a", "path": "main.json"}, {}, "leads back to itself"),
    "circle": (
        {"name": "a", "path": "b.json"},
        {"sub_recipes": [{"name": "c", "path": "main.json"}]},
        "leads back to itself: main.json -> b.json -> main.json",
    ),
    "deep": (
        {"name": "a", "path": "b.json"},
        {"sub_recipes": [{"name": "c", "path": "c.json"}]},
        "nest at most 2 deep: main.json -> b.json -> c.json",
    ),
    "undeclared": (
        {"name": "a", "path": "b.json", "values": {"pakage": "x"}},
        {"parameters": [PACKAGE], "prompt": "{{ package }}"},
        "`a` declares no parameter `pakage`; did you mean `package`?",
    ),
    "value": (
        {"name": "a", "path": "b.json", "values": {"package": "x"}},
        {"parameters": [PACKAGE | {"input_type": "number"}], "prompt": "{{ package }}"},
        "the parameter `package` of `a` must be a number",
    ),
    "matrix": ({"name": "a", "path": "b.json"}, {"matrix": {"x": [1]}}, "cannot have a `matrix`"),
    "sandbox": (
        {"name": "a", "path": "b.json"},
        {"sandbox": {"network": "none"}},
        "declare the same `sandbox` there",
    ),
    "its own": ({"name": "a", "path": "b.json"}, {"limits": {"steps": 0}}, "must be at least 1"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_sub_recipe_is_told_with_its_place(name: str, tmp_path: Path) -> None:
    entry, below, told = FAULTY[name]

    with pytest.raises(FaultyInput) as caught:
        opened(tmp_path, entry, below)

    assert len(caught.value.faults) == 1
    assert told in str(caught.value)
    assert f"{tmp_path}/" in str(caught.value)


def test_a_path_that_is_a_template_is_opened_when_it_is_known(tmp_path: Path) -> None:
    entry = {"name": "a", "path": "{{ recipe_dir }}/{{ which }}.json"}
    which = PACKAGE | {"key": "which"}
    source = opened(tmp_path, entry, {"description": "B it is."}, {"parameters": [which]})

    (sub,) = source.rendered({"which": "b"}).sub_recipes
    assert (sub.name, sub.description) == ("a", "B it is.")
    with pytest.raises(FaultyInput, match=r"there is no recipe .*none\.json"):
        source.rendered({"which": "none"})


def test_what_has_no_effect_is_warned_of(tmp_path: Path) -> None:
    below = {"workspace": {"path": "x"}, "expect": {"patch": "required", "answer": "nonempty"}}
    source = opened(tmp_path, {"name": "a", "path": "b.json"}, below)

    told = [fault.message.partition(" has")[0] for fault in source.warnings]
    assert sorted(told) == ["`expect.patch`", "`workspace`"]


def test_preset_values_leave_the_tools_parameters_and_win(tmp_path: Path) -> None:
    parameters = [PACKAGE, PACKAGE | {"key": "owner"}]
    entry = {"name": "a", "path": "b.json", "values": {"owner": "me"}}
    below = {"prompt": "{{ package }} of {{ owner }}", "parameters": parameters}

    (sub,) = opened(tmp_path, entry, below).rendered({}).sub_recipes
    assert list(sub.parameters["properties"]) == sub.parameters["required"] == ["package"]
    values = sub.source.values({"package": "x", **sub.values})
    assert sub.source.rendered(values).prompt == "x of me"


def test_a_model_gives_the_text_of_a_file_and_cannot_have_one_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden", encoding="utf-8")
    file = PACKAGE | {"key": "file", "input_type": "file"}
    entry = {"name": "a", "path": "b.json"}

    (sub,) = (
        opened(tmp_path, entry, {"prompt": "{{ file }}", "parameters": [file]})
        .rendered({})
        .sub_recipes
    )
    assert "not a path" in sub.parameters["properties"]["file"]["description"]
    assert sub.source.values({"file": str(secret)}) == {"file": str(secret)}


def test_a_change_of_a_sub_recipe_changes_its_content(tmp_path: Path) -> None:
    entry = {"name": "a", "path": "b.json"}
    (one,) = opened(tmp_path, entry, {}).rendered({}).sub_recipes
    (same,) = opened(tmp_path, entry, {}).rendered({}).sub_recipes
    (other,) = opened(tmp_path, entry, {"prompt": "else"}).rendered({}).sub_recipes

    assert one == same
    assert one.content != other.content
    assert evolve(one, content="") != one


def test_names_of_the_houses_tools_are_taken() -> None:
    assert {tool.name for tool in bundled_tools()} <= set(TOOL_NAMES)
