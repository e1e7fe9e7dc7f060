"""goose's recipes are recipes."""

from pathlib import Path

import pytest

from harness_batch.errors import FaultyInput
from harness_batch.recipe.door import RecipeSource, open_recipe
from harness_batch.recipe.record import RetryRule


def opened(folder: Path, text: str, name: str = "recipe.yaml") -> RecipeSource:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return open_recipe(file)


def test_a_cli_recipe_of_goose(tmp_path: Path) -> None:
    source = opened(
        tmp_path,
        """
version: "1.0.0"
title: Analyse a log
description: Finds errors in a log
author: {contact: someone}
instructions: |
  You analyse logs for {{ user_role }}.
prompt: |
  {% if max_files > 3 %}Be brief.{% endif %}
  Process {{ max_files }} files as {{ output_format }}. Debug: {{ debug }}.
  {{ source_code | indent(2) }}
activities:
  - "message: **Welcome** {{ user_role }}"
  - Check for errors
parameters:
  - {key: user_role, input_type: string, requirement: user_prompt, description: d, default: admins}
  - {key: max_files, input_type: number, requirement: optional, default: "10", description: most}
  - key: output_format
    input_type: select
    requirement: required
    description: format
    options: [json, markdown, csv]
  - {key: debug, input_type: boolean, requirement: optional, default: "false", description: d}
  - {key: source_code, input_type: file, requirement: required, description: code}
extensions:
  - {type: builtin, name: developer, display_name: Developer, timeout: 300, bundled: true}
  - {type: platform, name: todo, description: null, available_tools: [todo_write]}
  - {type: stdio, name: search, cmd: uvx, args: [x], env_keys: [KEY], timeout: 60, optional: true}
settings:
  {goose_provider: anthropic, goose_model: claude-sonnet-5, temperature: 0.7, max_turns: 25}
response:
  json_schema: {type: object, properties: {errors: {type: integer}}, required: [errors]}
""",
    )
    code = tmp_path / "a.py"
    code.write_text("x = 1\ny = 2\n")
    values = source.values({"output_format": "csv", "source_code": str(code)})
    recipe = source.rendered(values)
    assert recipe.prompt == "Be brief.\nProcess 10 files as csv. Debug: false.\nx = 1\n  y = 2\n\n"
    assert recipe.instructions == "You analyse logs for admins.\n"
    assert recipe.models == ("anthropic/claude-sonnet-5",)
    assert (recipe.temperature, recipe.limits.steps) == (0.7, 25)
    assert [extension.name for extension in recipe.extensions] == ["developer", "todo"]
    assert recipe.permissions == ()
    assert [warning.line for warning in source.warnings] == [27, 28]


def test_a_desktop_file_of_goose(tmp_path: Path) -> None:
    source = opened(
        tmp_path,
        """{
  "name": "Code Review",
  "recipe": {
    "version": "1.0.0", "title": "Code Review", "description": "d",
    "instructions": "Review {{ what }}.",
    "parameters": [{"key": "what", "input_type": "string", "requirement": "required",
                    "description": "d"}],
    "extensions": []
  },
  "isGlobal": true,
  "lastModified": "2030-07-02T03:46:46.778Z",
  "isArchived": false
}""",
        "review.json",
    )
    assert source.name == "review"
    assert source.place("instructions") == (5, 21)
    recipe = source.rendered(source.values({"what": "all"}))
    assert (recipe.prompt, recipe.instructions) == ("Review all.", "")


def test_faults_within_a_desktop_file_have_their_lines(tmp_path: Path) -> None:
    with pytest.raises(FaultyInput) as caught:
        opened(tmp_path, "name: x\nrecipe:\n  titl: x\n  limits: {steps: 0}\nlimits: {}\n")
    assert [(f.line, f.column, f.message) for f in caught.value.faults] == [
        (3, 3, "unknown key `titl`; did you mean `title`?"),
        (4, 19, "`limits.steps` must be at least 1, not 0"),
        (5, 1, "`limits` belongs inside `recipe`, where the recipe itself is"),
    ]


def test_our_own_keys_win_over_gooses_settings(tmp_path: Path) -> None:
    text = (
        "prompt: a\nmodel: a/b\nlimits: {steps: 5}\n"
        "settings: {goose_provider: x, goose_model: y, max_turns: 9}\n"
    )
    recipe = opened(tmp_path, text).rendered({})
    assert (recipe.models, recipe.limits.steps) == (("a/b",), 5)


def test_half_a_model_is_a_warning(tmp_path: Path) -> None:
    source = opened(tmp_path, "prompt: a\nsettings:\n  goose_model: gpt\n")
    assert source.rendered({}).models == ()
    assert [str(warning) for warning in source.warnings] == [
        f"{tmp_path}/recipe.yaml:3:3: warning: `goose_model` without `goose_provider` says "
        "nothing; the configuration's model is used"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "title: t\nprompt: {{ task }}\nparameters: [{key: task}]\n",
        "{% extends 'parent.yaml' %}\n{% block prompt %}x{% endblock %}\n",
        "prompt: a\nextensions:\n{% for e in list %}\n- {{ e }}\n{% endfor %}\n",
        "prompt: a\nsettings:\n  temperature: {{ t }}\n",
        "prompt: a\nsettings:\n  max_turns: {{ t }}0\n",
    ],
)
def test_templates_that_build_the_structure_are_refused_with_the_reason(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(FaultyInput, match="they cannot build its structure"):
        opened(tmp_path, text)


def test_a_retry_of_goose_has_gooses_defaults_and_begins_the_conversation_again(
    tmp_path: Path,
) -> None:
    text = (
        "prompt: a\nparameters: [{key: n, default: x}]\nretry:\n  max_retries: 3\n"
        "  checks: [{type: shell, command: 'test -f {{ n }}'}]\n"
        "  on_failure: rm -f {{ n }}\n"
    )
    source = opened(tmp_path, text)
    assert source.rendered(source.values({})).retry == RetryRule(
        max_retries=3,
        checks=("test -f x",),
        on_failure="rm -f x",
        timeout_seconds=300,
        on_failure_timeout_seconds=600,
        feedback=False,
        reset=False,
    )
    assert source.warnings == ()


@pytest.mark.parametrize(("word", "feedback"), [("true", False), ("false", True)])
def test_gooses_word_for_going_on_is_understood(word: str, feedback: bool, tmp_path: Path) -> None:
    text = (
        "prompt: a\nretry:\n  max_retries: 1\n  checks: [{type: shell, command: make}]\n"
        f"  reset_context: {word}\n"
    )
    retry = opened(tmp_path, text).rendered({}).retry
    assert retry is not None
    assert retry.feedback is feedback


@pytest.mark.parametrize("more", ["", "  feedback: true\n", "checks: [{name: t, run: make}]\n"])
def test_a_retry_that_nothing_asks_for_is_a_warning(more: str, tmp_path: Path) -> None:
    source = opened(tmp_path, f"prompt: a\nretry:\n  max_retries: 1\n{more}")
    assert [warning.message for warning in source.warnings] == [
        "`retry` never tries again: it needs `checks` of its own, or `feedback: true` and"
        " `checks` of the recipe"
    ]
