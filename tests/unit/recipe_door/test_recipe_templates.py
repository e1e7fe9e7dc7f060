"""Templates: what they see, what they cannot do, and that they always end."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_batch.errors import FaultyInput
from harness_batch.recipe.door import open_recipe
from harness_batch.recipe.record import Recipe
from harness_batch.recipe.templates import RecipeTemplates, Trouble


def recipe_of(folder: Path, text: str, **variables: object) -> Recipe:
    file = folder / "r.yaml"
    file.write_text(text, encoding="utf-8")
    source = open_recipe(file)
    return source.rendered({**source.values(variables), **variables})


def said(folder: Path, text: str, /, **variables: object) -> str | Trouble:
    templates = RecipeTemplates(folder)
    templates.begin()
    return templates.rendered(text, variables)


def test_templates_see_parameters_matrix_values_and_the_recipes_folder(tmp_path: Path) -> None:
    recipe = recipe_of(
        tmp_path,
        "prompt: '{{ a }} {{ b }} {{ c }} {{ recipe_dir }}'\n"
        "parameters: [{key: a, input_type: number, default: 0}]\n"
        "matrix: {b: [false], c: [1.5]}\n",
        b=False,
        c=1.5,
    )
    assert recipe.prompt == f"0 false 1.5 {tmp_path}"


def test_texts_are_rendered_wherever_they_stand_and_keys_are_not(tmp_path: Path) -> None:
    recipe = recipe_of(
        tmp_path,
        """
prompt: "{{ p }}"
parameters: [{key: p, description: "{{ nothing }}"}]
checks: [{name: "check {{ p }}", run: "test {{ p }}"}]
context: ["{{ p }}/**"]
patch: {allow: ["{{ p }}/*"], message: "{{ p | upper }}"}
response: {json_schema: {type: object, properties: {"{{ p }}": {description: "{{ p }}"}}}}
""",
        p="x",
    )
    assert recipe.checks[0].name == "check x"
    assert recipe.context == ("x/**",)
    assert (recipe.patch.allow, recipe.patch.message) == (("x/*",), "X")
    assert recipe.response_schema == {
        "type": "object",
        "properties": {"{{ p }}": {"description": "x"}},
    }


def test_a_text_without_templates_keeps_its_bytes(tmp_path: Path) -> None:
    assert recipe_of(tmp_path, 'prompt: "a {b} \\n\\n"\n').prompt == "a {b} \n\n"


def test_included_files_come_from_the_recipes_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "rules.md").write_text("Mind {{ a }}.\nAlways.\n")
    (tmp_path / "frame.md").write_text("[{% block body %}{% endblock %}]")
    text = (
        "prompt: |-\n  {% include 'parts/rules.md' %}\n  {{ code | indent(2) }}\n"
        "instructions: \"{% extends 'frame.md' %}{% block body %}{{ a }}{% endblock %}\"\n"
        "parameters: [{key: a}, {key: code}]\n"
    )
    recipe = recipe_of(tmp_path, text, a="this", code="x\ny")
    assert recipe.prompt == "Mind this.\nAlways.\n\nx\n  y"
    assert recipe.instructions == "[this]"


def test_a_fault_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "part.md").write_text("fine\n{{ oops }}\n")
    with pytest.raises(FaultyInput) as caught:
        recipe_of(tmp_path, "prompt: \"{% include 'part.md' %}\"\n")
    assert str(caught.value).startswith(f"{tmp_path / 'part.md'}:2:1: template: nothing defines")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "folder/secret", "a/../../s"])
def test_nothing_outside_the_recipes_folder_is_included(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    inside = tmp_path / "recipes"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "folder").symlink_to(tmp_path)
    with pytest.raises(FaultyInput, match="is not within the recipe's folder"):
        recipe_of(inside, f"prompt: \"{{% include '{name}' %}}\"\n")
    with pytest.raises(FaultyInput, match="is not within the recipe's folder"):
        recipe_of(inside, "prompt: '{% include name %}'\nparameters: [{key: name}]\n", name=name)


def test_a_variable_that_no_row_brings_is_told_with_its_line(tmp_path: Path) -> None:
    text = "prompt: |\n  one\n  {{ column }}\nmatrix: {include: {csv: a.csv}}\n"
    with pytest.raises(FaultyInput, match=r"r.yaml:3:1: template: 'column' is undefined"):
        recipe_of(tmp_path, text)
    assert recipe_of(tmp_path, text, column=7).prompt == "one\n7\n"


RENDERED_BAD = [
    ("model: '{{ v }}'", "claude", "`model` must be PROVIDER/MODEL, not `claude`"),
    ("prompt: '{{ v }}'", "  ", "needs a `prompt` or `instructions`"),
    ("limits: {seconds: '{{ v }}'}", "soon", "`limits.seconds`: `soon` is no duration"),
    ("context: ['{{ v }}']", "../x", "`context`: `../x` leads out of the workspace"),
    ("checks: [{name: '{{ v }}', run: a}, {name: b, run: a}]", "b", "two checks have the name `b`"),
    ("checks: [{name: '{{ v }}', run: a}]", "", "`checks[0].name` must not be empty"),
    ("env: ['{{ v }}']", "A-B", "`env`: `A-B` is no name or glob"),
    ("workspace: {path: '{{ v }}'}", "/etc", "`workspace.path`: `/etc` leads out"),
    ("prompt: \"{{ v }}{{ '\\\\0' }}\"", "x", "prints U+0000, which is no text"),
]


@pytest.mark.parametrize(("line", "value", "told"), RENDERED_BAD)
def test_what_templates_make_is_checked_again(
    line: str, value: str, told: str, tmp_path: Path
) -> None:
    prompt = "" if line.startswith("prompt") else "prompt: a\n"
    with pytest.raises(FaultyInput) as caught:
        recipe_of(tmp_path, f"{prompt}{line}\nparameters: [{{key: v}}]\n", v=value)
    assert told in str(caught.value)
    assert caught.value.faults[0].line == (1 if not prompt else 2)


BOMBS = [
    "{% for i in range(10**9) %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}" + "text " * 1000 + "{% endfor %}",
    "{{ 'a' * 10**10 }}",
    "{{ ['a' * 100000] * 100000 }}",
    "{{ 10 ** 10 ** 10 % 7 }}{{ 3 ** (10 ** 8) }}",
    "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "{% set n = namespace(s=1) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}",
    "{% set n = namespace(s=1) %}{% for i in range(99) %}"
    "{% set n.s = {1: n.s, 2: n.s} %}{% endfor %}",
    "{% set n = namespace(s='a') %}{% for i in range(99) %}"
    "{% set n.s = namespace(a=n.s, b=n.s) %}{% endfor %}{{ n.s ~ 'x' }}",
    "{% set n = namespace(s='a') %}{% for i in range(99) %}"
    "{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "{{ 'a'.center(10**9) }}",
    "{{ 'a' | center(10**9) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%999999999d' | format(1) }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ range(99999) | join('x' * 99999) }}",
    "{{ ('x' * 99999).join(range(99999) | map('string') | list) }}",
    "{{ ('x' * 99999) | replace('x', 'y' * 99999) }}",
    "{{ ('x' * 99999).replace('x', 'y' * 99999) }}",
    "{{ ('\n' * 999999) | indent(9999) }}",
    "{{ [1] | tojson(indent=10**9) }}",
    "{{ 1 | round(10**9, 'floor') }}",
    "{{ ('x' * 999999) | wordwrap }}",
    "{% include 'self.txt' %}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{% for i in [1] %}" * 30 + "{% endfor %}" * 30,
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_template_bomb_ends_in_trouble_soon(bomb: str, tmp_path: Path) -> None:
    (tmp_path / "self.txt").write_text("{% include 'self.txt' %}")
    began = time.thread_time()
    assert isinstance(said(tmp_path, bomb), Trouble)
    assert time.thread_time() - began < 4


@pytest.mark.parametrize(
    "template",
    [
        "{{ ().__class__.__mro__ }}",
        "{{ x.__init__.__globals__ }}",
        "{{ x | attr('__class__') }}",
        "{{ [x] | map(attribute='__class__') | list }}",
        "{% set y = [] %}{{ y.append(1) }}",
        "{{ lipsum }}",
        "{{ [1] | random }}",
        "{{ x.missing }}",
        "{{ 1 / 0 }}",
        "{{ 'a' + 1 }}",
        "{{ x() }}",
    ],
)
def test_what_leads_out_of_the_sandbox_or_fails_is_trouble(template: str, tmp_path: Path) -> None:
    assert isinstance(said(tmp_path, template, x="text"), Trouble)


def test_usual_templates_work(tmp_path: Path) -> None:
    template = (
        "{% for k, v in pairs.items() %}{{ loop.index }}{{ k }}={{ v }}{{ ', ' if not loop.last }}"
        "{% endfor %} {{ names | sort | join('/') }} {{ 'a' ~ 1 }} {{ text | trim | title }} "
        "{{ '%s-%03d' % (text, 7) }} {{ none | default('d', true) }} {{ [1, [2]] | tojson }} "
        "{%- set n = namespace(c=0) %}{% for x in range(3) %}{% set n.c = n.c + x %}{% endfor %}"
        "{{ n.c }}"
        "{% macro m(a, context='c') %}<{{ a }}{{ context }}>{% endmacro %}{{ m(1, context='z') }}"
    )
    values: dict[str, Any] = {"pairs": {"a": 1, "b": True}, "names": ["z", "y"], "text": "hi"}
    assert said(tmp_path, template, **values) == "1a=1, 2b=true y/z a1 Hi hi-007 d [1, [2]]3<1z>"


def shape(value: Any) -> Any:
    match value:
        case dict():
            return {key: shape(inner) for key, inner in value.items()}
        case list() | tuple():
            return [shape(inner) for inner in value]
        case _:
            return type(value).__name__


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
    | st.sampled_from(["a: b", "{{ x }}", "{% raw %}", "- x", "\n\nmodel: evil/x", '"]', "}}", "'"])
)
def test_a_value_never_changes_the_shape_of_the_document(tmp_path: Path, value: str) -> None:
    file = tmp_path / "r.yaml"
    if not file.exists():
        file.write_text(
            "prompt: 'Do {{ v }}'\ninstructions: |\n  {{ v }}\n  end\ntitle: x{{ v }}\n"
            "checks: [{name: t, run: 'echo {{ v }}'}]\nparameters: [{key: v}]\n"
            "response: {json_schema: {type: object, description: '{{ v }}', properties: {}}}\n"
        )
    source = open_recipe(file)
    recipe = source.rendered(source.values({"v": value}))
    assert recipe.prompt == f"Do {value}"
    assert recipe.instructions == f"{value}\nend\n"
    assert recipe.title == f"x{value}"
    assert [check.run for check in recipe.checks] == [f"echo {value}"]
    assert shape(recipe.response_schema) == shape(source.document["response"]["json_schema"])
    assert (recipe.models, recipe.permissions) == ((), ())


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ("/fix {{ v }}", "fix"),
        ("/fix", "fix"),
        ("/fix-it\n  {{ v }}", "fix-it"),
        ("{{ v }}", None),
        ("/{{ v }}", None),
        ("/fix{{ v }}", None),
        ("/usr/bin/x fails: {{ v }}", None),
        ("Do /fix {{ v }}", None),
    ],
)
def test_only_the_file_itself_calls_a_command(
    prompt: str, command: str | None, tmp_path: Path
) -> None:
    declared = "parameters: [{key: v}]\n" if "{{" in prompt else ""
    text = f"prompt: {json.dumps(prompt)}\n{declared}"
    assert recipe_of(tmp_path, text, v="/evil !`id`").command == command
