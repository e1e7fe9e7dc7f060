"""What is known of a provider before it is asked agrees with how it is asked."""

from pathlib import Path

import pytest

from harness_batch.config.record import KeyOrigin, ProviderSettings
from harness_batch.errors import FaultyInput, Unsupported, UsageError
from harness_batch.messages import ModelRef
from harness_batch.models import anthropic, openai_chat, openai_responses
from harness_batch.models.readiness import HOMES, KNOWN, lacking, require_runnable
from harness_batch.models.table import TABLE

REF = ModelRef("p", "m")


def provider(**given: object) -> ProviderSettings:
    return ProviderSettings(name="p", **given)  # type: ignore[arg-type]  # settings of tests


def test_what_is_taken_for_connectable_is_connectable() -> None:
    assert set(KNOWN) == set(TABLE)
    assert HOMES["anthropic"] == anthropic.WIRE.home
    assert HOMES["openai-chat"] == openai_chat.WIRE.home
    assert HOMES["openai-responses"] == openai_responses.WIRE.home


def test_a_type_without_a_connection_is_refused_with_those_there_are() -> None:
    for kind in {"replay"} - set(KNOWN):
        with pytest.raises(Unsupported, match=f"type {kind} is not supported yet; there are anth"):
            require_runnable(REF, provider(type=kind))


def test_a_script_is_read_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("- tex: hi\n")
    with pytest.raises(FaultyInput, match="'tex'"):
        require_runnable(ModelRef("p", str(tmp_path / "s.yaml")), provider(type="scripted"))


def test_a_key_file_that_is_not_believed_is_refused_whoever_would_look_there() -> None:
    origin = KeyOrigin(trouble="auth.json is open to others: chmod 600 auth.json")
    with pytest.raises(UsageError, match="chmod 600"):
        require_runnable(REF, provider(type="anthropic", key_origin=origin))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"type": "anthropic"}, "p: no API key; set api_key of provider p, or run"),
        ({"type": "anthropic", "base_url": "http://127.0.0.1:8080"}, None),
        ({"type": "openai-chat", "base_url": "https://api.openai.com/v1"}, "no API key"),
        ({"type": "anthropic", "headers": {"x-api-key": "k"}}, None),
        ({"type": "anthropic", "api_key": "a b"}, "a blank or a strange sign"),
        ({"type": "copilot", "base_url": "http://127.0.0.1:8080"}, "p: no GitHub login"),
        ({"type": "copilot", "api_key": "gho_1"}, None),
        ({"type": "scripted"}, None),
    ],
)
def test_a_key_is_missed_only_where_one_is_wanted(
    given: dict[str, object], told: str | None
) -> None:
    said = lacking(provider(**given))
    assert said is None if told is None else told in str(said)
