"""The examples of other providers in docs/models.md are configurations and say what they should."""

import re
from pathlib import Path

import pytest

from harness_batch.config.door import load_config
from harness_batch.config.record import Config

PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
NAMED = dict(
    re.findall(r"^### (.+?)\n(?:(?!^#).*\n)*?```jsonc\n((?:.*\n)*?)```", PAGE, re.MULTILINE)
)


def opened(text: str, tmp_path: Path) -> Config:
    file = tmp_path / "config.jsonc"
    file.write_text(text)
    file.chmod(0o600)
    environ = {name: f"key-of-{name}" for name in re.findall(r"\{env:(\w+)\}", text)}
    return load_config(repo=None, explicit=file, environ=environ)


@pytest.mark.parametrize("name", NAMED)
def test_the_example_of_each_provider_is_a_configuration(name: str, tmp_path: Path) -> None:
    config = opened(NAMED[name], tmp_path)
    assert not config.warnings
    assert set(config.providers) > {"anthropic", "openai"}
    assert not [name for name, it in config.providers.items() if it.key_origin.trouble]


def test_there_is_an_example_for_each_of_the_usual_providers() -> None:
    assert list(NAMED) == [
        "OpenRouter",
        "Azure OpenAI",
        "Ollama",
        "vLLM",
        "llama.cpp",
        "Gemini",
    ]


def test_azure_gets_its_key_in_its_own_header_and_its_version_in_the_url(tmp_path: Path) -> None:
    config = opened(NAMED["Azure OpenAI"], tmp_path)
    azure = config.providers["azure-classic"]
    assert azure.query == {"api-version": "2024-10-21"}
    assert azure.headers == {"api-key": "key-of-AZURE_OPENAI_API_KEY"}
    assert "key-of-AZURE_OPENAI_API_KEY" in config.secrets
