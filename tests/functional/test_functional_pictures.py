"""Pictures that `read` shows, and options of models, over the command line and all wire formats."""

import base64
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from functional_cli import Form, Job, Ran, carry_out
from wire import Answer, Call, Refuse, Reply, Say, Seen, Think

FORMS: tuple[Form, ...] = ("anthropic", "openai-chat", "openai-responses")
GIF = "GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
DATA = base64.b64encode(GIF.encode()).decode()
SEAL = {"google": {"thought_signature": "c2ln"}}
SCRIPT = (
    Reply(Think("What is there?"), Call("read", {"file_path": "logo.gif"}, extra=SEAL)),
    Reply(Think("One dot."), Say("I look again."), Call("read", {"file_path": "logo.gif"})),
    Reply(Say("A dot.")),
)
RECIPE = {"checks": None, "expect": None, "prompt": "What is in the logo?"}
SEES = {"context": 100_000, "output": 9000, "abilities": {"images": True}}
OPTIONS: dict[Form, dict[str, Any]] = {
    "anthropic": {"reasoning_effort": "high", "thinking_budget": 2048, "cache_ttl": "1h"},
    "openai-chat": {"reasoning_effort": "high", "body": {"verbosity": "low"}},
    "openai-responses": {"reasoning_effort": "high", "reasoning_summary": "auto"},
}


def picky(seen: Seen) -> Answer:
    """A provider that cannot make anything of the picture."""
    if DATA.encode() in seen.body:
        return Refuse(400, {"error": {"type": "invalid_request_error", "message": "bad image"}})
    return SCRIPT[min(seen.step, 2)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [
        Job(
            f"sees.{form}",
            SCRIPT,
            form,
            RECIPE,
            {"query": {"api-version": "2030-01-01"}, "options": OPTIONS[form]},
            SEES,
        )
        for form in FORMS
    ]
    jobs.append(Job("blind.openai-chat", SCRIPT, "openai-chat", RECIPE, model={"context": 100_000}))
    jobs.append(Job("picky.anthropic", picky, "anthropic", RECIPE, model=SEES))
    folder = tmp_path_factory.mktemp("pictures")
    return carry_out(folder, jobs, "-j", "5", files={"logo.gif": GIF})


def test_all_sessions_pass(ran: Ran) -> None:
    assert ran.exit_code == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("form", FORMS)
def test_the_picture_is_sent_and_each_request_begins_with_the_one_before(
    ran: Ran, form: Form
) -> None:
    bodies = [plain(seen.body) for seen in ran.session(f"sees.{form}").requests]
    assert [body.count(DATA.encode()) for body in bodies] == [0, 1, 2]
    for earlier, later in pairwise(bodies):
        head, found, _ = earlier.rpartition(b'],"max_')
        assert found
        assert later.startswith(head)


def plain(body: bytes) -> bytes:
    return body.replace(b',"cache_control":{"type":"ephemeral"}', b"")


@pytest.mark.parametrize("form", FORMS)
def test_options_and_parameters_of_the_configuration_go_out(ran: Ran, form: Form) -> None:
    last = ran.session(f"sees.{form}").requests[-1]
    assert last.query == "api-version=2030-01-01"
    said = json.loads(last.body)
    match form:
        case "anthropic":
            assert said["output_config"] == {"effort": "high"}
            assert said["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        case "openai-chat":
            assert (said["reasoning_effort"], said["verbosity"]) == ("high", "low")
            (call,) = said["messages"][2]["tool_calls"]
            assert call["extra_content"] == SEAL
        case "openai-responses":
            assert said["reasoning"] == {"effort": "high", "summary": "auto"}
            assert [i["type"] for i in said["input"] if "encrypted_content" in i] == [
                "reasoning",
                "reasoning",
            ]


def test_a_model_that_is_not_known_to_see_is_told_the_name_alone(ran: Ran) -> None:
    session = ran.session("blind.openai-chat")
    assert DATA.encode() not in session.requests[-1].body
    assert b"logo.gif is a GIF image of 29 bytes; its content is not shown" in (
        session.requests[-1].body
    )


def test_a_picture_that_the_provider_refuses_does_not_end_the_session(ran: Ran) -> None:
    session = ran.session("picky.anthropic")
    assert [call["http_status"] for call in session.calls] == [200, 400, 200, 400, 200]
    assert b"the provider refused the image" in session.requests[-1].body
    notices = json.dumps(ran.events_of("picky.anthropic", "notice"))
    assert "once more without the image" in notices


def test_the_record_keeps_the_picture_and_the_transcript_stays_readable(ran: Ran) -> None:
    session = ran.session("sees.anthropic")
    assert DATA not in session.transcript
    assert "logo.gif is a picture (GIF, 29 bytes)" in session.transcript
    assert DATA in (Path(session.folder).parents[2] / "events.jsonl").read_text()
