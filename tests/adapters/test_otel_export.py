"""A finished run as a trace at a real collector; a bad collector costs a line and little time."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness_batch.app.telemetry import send, wants
from harness_batch.errors import HostError, UsageError
from harness_batch_reports.read import read_trace
from harness_batch_reports.trace import spans, trace_id
from otlp_receiver import attributes, collector
from small_history import TWO_NIGHTS, build

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("trace") / "run.duckdb", TWO_NIGHTS)


def test_every_session_request_and_tool_call_is_a_span_under_its_own(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as received:
        monkeypatch.setenv(ENDPOINT, received.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc")
        assert send(database, "r1") == 1 + 3 + 5 + 4
    assert set(received.paths) == {"/v1/traces"}
    assert received.headers[0]["api-key"] == "abc"
    found = received.spans()
    names = {span.span_id: span.name for span in found}
    tree = sorted((span.name, names.get(span.parent_span_id, "-")) for span in found)
    assert tree == [
        ("chat big", "invoke_agent build"),
        ("chat big", "invoke_agent build"),
        ("chat big", "invoke_agent build"),
        ("chat big", "invoke_agent build"),
        ("chat small", "invoke_agent build"),
        ("execute_tool bash", "invoke_agent build"),
        ("execute_tool bash", "invoke_agent build"),
        ("execute_tool bash", "invoke_agent build"),
        ("execute_tool bash", "invoke_agent build"),
        ("invoke_agent build", "invoke_agent build"),
        ("invoke_agent build", "invoke_workflow fix"),
        ("invoke_agent build", "invoke_workflow fix"),
        ("invoke_workflow fix", "-"),
    ]
    assert {span.trace_id for span in found} == {trace_id("r1").to_bytes(16, "big")}
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in found)


def test_a_span_has_the_standard_names(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as received:
        monkeypatch.setenv(ENDPOINT, received.url)
        send(database, "r1")
    (resource,) = {
        r.resource.SerializeToString() for q in received.requests for r in q.resource_spans
    }
    assert b"harness-batch" in resource
    by_case = {attributes(s).get("gen_ai.response.id", s.name): attributes(s)
               for s in received.spans()}  # fmt: skip
    run = by_case["invoke_workflow fix"]
    assert run["cicd.pipeline.run.id"] == "r1"
    assert run["cicd.pipeline.result"] == "failure"
    assert run["harness.cost.usd"] == pytest.approx(0.035)
    called = next(
        a for s in received.spans()
        if (a := attributes(s)).get("gen_ai.usage.input_tokens") == 1500
    )  # fmt: skip
    assert called["gen_ai.operation.name"] == "chat"
    assert called["gen_ai.provider.name"] == "p"
    assert called["gen_ai.usage.cache_read.input_tokens"] == 800
    assert called["gen_ai.usage.cache_write.input_tokens"] == 100
    limited = next(s for s in received.spans() if attributes(s).get("error.type") == "rate_limit")
    assert limited.status.code == 2
    assert attributes(limited)["http.response.status_code"] == 429
    denied = [
        attributes(s) for s in received.spans() if attributes(s).get("harness.permission.decision")
    ]
    assert {one["harness.permission.decision"] for one in denied} == {"allow", "deny"}
    failed = next(
        s for s in received.spans() if attributes(s).get("test.case.result.status") == "fail"
    )
    assert attributes(failed)["harness.session.reason"] == "check:tests"
    assert failed.status.message == "check:tests"


def test_the_same_run_is_the_same_trace(database: Path) -> None:
    assert list(spans(read_trace(database, "r1"))) == list(spans(read_trace(database, "r1")))
    (killed,) = (s for s in spans(read_trace(database, "r2")) if s.error == "infra.killed")
    assert killed.finished_at >= killed.started_at
    with pytest.raises(UsageError, match="holds no run none"):
        send(database, "none")


@pytest.mark.parametrize("kind", ["refuses", "fails", "is silent"])
def test_a_bad_collector_is_told_in_time(
    database: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with collector(status=400, silent=kind == "is silent") as received:
        monkeypatch.setenv(ENDPOINT, url if kind == "refuses" else received.url)
        begin = time.monotonic()
        with pytest.raises(HostError, match="the trace was not exported"):
            send(database, "r1", patience_s=0.5)
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({ENDPOINT: "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({ENDPOINT: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_environment_decides(environ: dict[str, str], wanted: bool) -> None:
    assert wants(environ) is wanted


def harness_batch(cwd: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **environ},
    )  # fmt: skip


def test_a_run_sends_its_trace_and_a_dead_collector_changes_nothing(tmp_path: Path) -> None:
    harness_batch(tmp_path, "init", "--sample", "sample")
    run = ("run", "fix-failing-test", "--repo", "sample", "--progress", "none")
    with collector() as received:
        done = harness_batch(tmp_path, *run, **{ENDPOINT: received.url})
        assert (done.returncode, done.stderr.count("OpenTelemetry")) == (0, 0)
        sent = len(received.spans())
        again = harness_batch(tmp_path, "export", "--otel", **{ENDPOINT: received.url})
        assert again.stdout == f"sent {sent} spans of last\n"
        assert len(received.spans()) == 2 * sent > 10
    dead = harness_batch(
        tmp_path, *run, **{ENDPOINT: received.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    )
    assert dead.returncode == 0
    assert dead.stderr.count("the trace was not exported") == 1
    assert "Traceback" not in dead.stderr
