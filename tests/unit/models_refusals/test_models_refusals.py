"""What a provider's answer means, in the words of many providers."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.errors import (
    AuthFailed,
    ContextOverflow,
    ModelRejected,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from harness_batch.models import refusals


def answered(status: int, body: Any = "", headers: dict[str, str] | None = None) -> ProviderError:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    refusal = refusals.from_http(status, headers or {}, raw)
    return refusals.typed(refusal, "mine", "check KEY", "sk-secret")


def heard(error: object) -> ProviderError:
    return refusals.typed(refusals.from_stream(error), "mine", "check KEY", "sk-secret")


def openai(message: str, kind: str = "invalid_request_error", code: str | None = None) -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(message: str, kind: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, openai("Incorrect API key provided"), AuthFailed),
        (401, anthropic("invalid x-api-key", "authentication_error"), AuthFailed),
        (400, [{"error": {"code": 400, "message": "no", "status": "INVALID"}}], ModelRejected),
        (
            429,
            [{"error": {"code": 429, "message": "no", "status": "insufficient_quota"}}],
            QuotaExhausted,
        ),
        (403, anthropic("not allowed", "permission_error"), AuthFailed),
        (404, openai("The model `x` does not exist", code="model_not_found"), ModelRejected),
        (400, openai("Unsupported parameter: 'temperature'"), ModelRejected),
        (422, {"detail": [{"msg": "field required"}]}, ModelRejected),
        (405, "", ModelRejected),
        (429, openai("Rate limit reached", "tokens", "rate_limit_exceeded"), RateLimited),
        (429, openai("Requested token count exceeds the context length per minute"), RateLimited),
        (429, openai("You exceeded your current quota", "insufficient_quota"), QuotaExhausted),
        (402, openai("Insufficient Balance"), QuotaExhausted),
        (400, anthropic("Your credit balance is too low", "invalid_request_error"), QuotaExhausted),
        (500, anthropic("Internal server error", "api_error"), Unavailable),
        (503, "Service Unavailable", Unavailable),
        (529, anthropic("Overloaded", "overloaded_error"), Overloaded),
        (429, anthropic("Overloaded", "overloaded_error"), Overloaded),
        (500, "upstream: context deadline exceeded", Unavailable),
        (504, "", ProviderTimeout),
        (408, "", ProviderTimeout),
        (413, anthropic("Request exceeds the maximum size", "request_too_large"), ContextOverflow),
    ],
)
def test_an_http_answer_is_this_error(status: int, body: Any, kind: type[ProviderError]) -> None:
    error = answered(status, body)
    assert type(error) is kind
    assert error.status == status


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000",
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
        "Please reduce the length of the messages or completion.",
        "Your input exceeds the context window of this model",
        "the request exceeds the available context size, try increasing it",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "tokens to keep from the initial prompt is greater than the context length",
        "prompt token count of 130000 exceeds the limit of 128000",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144 (requested: 300000)",
        "Input length (265330) exceeds model's maximum context length (262144).",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        "Prompt too long: 5152 tokens exceeds max_seq_len 2048",
        "Input is too long for requested model.",
        "Range of input length should be [1, 129024]",
    ],
)
def test_every_wording_of_a_request_that_is_too_long_is_known(message: str) -> None:
    assert type(answered(400, openai(message))) is ContextOverflow
    assert type(heard({"message": message})) is ContextOverflow


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, Overloaded),
        ({"type": "rate_limit_error", "message": "slow down"}, RateLimited),
        ({"type": "api_error", "message": "Internal"}, Unavailable),
        ({"type": "invalid_request_error", "message": "no"}, ModelRejected),
        ({"type": "authentication_error", "message": "no"}, AuthFailed),
        ({"code": 502, "message": "Provider disconnected"}, Unavailable),
        ({"code": "429", "message": "slow"}, RateLimited),
        ({"code": "insufficient_quota", "message": "no money"}, QuotaExhausted),
        ({"message": "Rate limit reached"}, RateLimited),
        ({"message": "something"}, Unavailable),
        ("upstream gone", Unavailable),
        (None, Unavailable),
        ([1], Unavailable),
    ],
)
def test_an_error_inside_a_stream_is_this_error(error: object, kind: type[ProviderError]) -> None:
    found = heard(error)
    assert type(found) is kind
    assert found.status is None
    assert "in the stream" in str(found)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    error = answered(429, "", headers)
    assert isinstance(error, RateLimited)
    assert error.retry_after == seconds


def test_a_wait_until_a_date_is_counted_from_now() -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    error = answered(503, "", {"retry-after": when})
    assert isinstance(error, Unavailable)
    assert error.retry_after == pytest.approx(60, abs=3)


def test_an_error_is_one_clear_line_without_the_key_and_without_control_characters() -> None:
    error = answered(401, openai("bad key sk-secret\r\n::error::\x1b[31m x\u202e"))
    assert str(error) == "mine: HTTP 401: bad key *** ::error:: [31m x (check KEY)"


def test_a_page_is_quoted_without_its_tags_and_not_at_length() -> None:
    page = "<html><head><style>p {}</style></head><body><h1>502</h1>" + "Bad gateway. " * 99
    text = str(answered(502, page))
    assert text.startswith("mine: HTTP 502: 502 Bad gateway.")
    assert len(text) < 400


def test_the_words_of_the_provider_behind_a_gateway_are_quoted() -> None:
    body = {"error": {"code": 400, "message": "Provider error", "metadata": {"raw": "no tools"}}}
    assert "Provider error: no tools" in str(answered(400, body))


@settings(deadline=None)
@given(st.integers(201, 599), st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_answer_is_a_typed_error_of_one_line(status: int, body: bytes) -> None:
    refusal = refusals.from_http(status, {}, body)
    text = str(refusals.typed(refusal, "mine", "check KEY", None))
    assert text.splitlines() == [text]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "type", "code", "metadata"]), inner)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON)
def test_any_error_object_is_a_typed_error(error: object) -> None:
    assert isinstance(heard(error), ProviderError)
    assert isinstance(answered(400, error), ProviderError)


@pytest.mark.parametrize("words", ["exceed", "input token count ", "<script", "prompt token count"])
def test_words_by_the_megabyte_are_looked_through_at_once(words: str) -> None:
    began = time.process_time()
    heard({"message": words * 200_000, "code": words * 200_000})
    answered(400, {"error": {"message": words * 5_000}})
    answered(400, words * 5_000)
    assert time.process_time() - began < 10
