"""Options of providers and models in configuration files."""

from pathlib import Path

import pytest

from harness_batch.config.door import load_config
from harness_batch.config.model_options import ModelOptions
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import FaultyInput


def loaded(tmp_path: Path, provider: str) -> ProviderSettings:
    file = tmp_path / "c.jsonc"
    file.write_text(f'{{"provider": {{"mine": {provider}}}}}')
    return load_config(repo=None, explicit=file, environ={"V": "2030-01-01"}).providers["mine"]


def test_a_models_options_stand_on_top_of_its_providers(tmp_path: Path) -> None:
    mine = loaded(
        tmp_path,
        """{"type": "openai-chat", "base_url": "http://x/v1",
         "query": {"api-version": "{env:V}"},
         "options": {"reasoning_effort": "low", "body": {"a": 1, "b": 1}},
         "models": {"m": {"options": {"reasoning_effort": "high", "body": {"b": 2}}}, "n": {}}}""",
    )
    low = ModelOptions(reasoning_effort="low", body={"a": 1, "b": 1})
    assert mine.options_of("m") == ModelOptions(reasoning_effort="high", body={"a": 1, "b": 2})
    assert mine.options_of("n") == mine.options_of("not listed") == low
    assert mine.query == {"api-version": "2030-01-01"}


def test_waits_are_bounded_when_nobody_says_how_and_can_be_set(tmp_path: Path) -> None:
    start = '{"type": "openai-chat", "base_url": "http://x/v1"'
    mine = loaded(tmp_path, start + "}")
    assert (mine.connect_timeout, mine.first_byte_timeout, mine.idle_timeout) == (10, 120, 120)
    mine = loaded(tmp_path, start + ', "connect_timeout": 3, "idle_timeout": 7.5}')
    assert (mine.connect_timeout, mine.first_byte_timeout, mine.idle_timeout) == (3, 120, 7.5)


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        ("openai-chat", '"thinking_budget": 2048', "'thinking_budget' is an option of type anthr"),
        ("openai-chat", '"reasoning_summary": "auto"', "is an option of type openai-responses"),
        ("anthropic", '"prompt_cache_key": "x"', "is an option of type openai-chat or"),
        ("scripted", '"reasoning_effort": "low"', "providers of type scripted have no options"),
        ("anthropic", '"thinking_budget": 100', "1024"),
        ("anthropic", '"thinking_budget": "much"', "adaptive"),
        ("anthropic", '"reasoning_effort": "highest"', "high"),
        ("anthropic", '"reasoning": "high"', "did you mean `reasoning_effort`"),
        ("openai-chat", '"body": {"messages": []}', "messages"),
    ],
)
@pytest.mark.parametrize("place", ["provider", "model"])
def test_options_that_make_no_sense_are_told_with_their_place(
    tmp_path: Path, kind: str, options: str, told: str, place: str
) -> None:
    own = f'"options": {{\n{options}}}'
    where = own if place == "provider" else f'"models": {{"m": {{{own}}}}}'
    with pytest.raises(FaultyInput) as caught:
        loaded(tmp_path, f'{{"type": "{kind}", "base_url": "http://x", {where}}}')
    (fault,) = caught.value.faults
    assert fault.line == 2
    assert told in fault.message
