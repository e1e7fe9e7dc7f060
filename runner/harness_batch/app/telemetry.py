"""The trace of a finished run to an OpenTelemetry collector; a run never fails or waits for it.

The library (extra `otel`) reads the standard variables itself: endpoint, headers, certificates.
Sending happens in a thread that is left behind when its time is up.
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_batch import __version__
from harness_batch.errors import HostError, UsageError
from harness_batch_reports.read import read_trace
from harness_batch_reports.records import ReportError
from harness_batch_reports.trace import Span, mapping_version, spans, trace_id
from harness_batch_reports.trace_records import Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

PATIENCE_S: Final = 10.0
"""How long a run waits for its collector."""
_TOGETHER: Final = 500
"""Spans of one request."""
INSTALL: Final = "install harness-batch[otel]"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def wants(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return any(environ.get(name) for name in names)


def after_run(database: Path, environ: Mapping[str, str]) -> str | None:
    """Send the run's trace when it is wanted; words on what went wrong, None when nothing did."""
    if not wants(environ):
        return None
    try:
        send(database, None)
    except (HostError, UsageError) as error:
        return str(error)
    return None


def send(database: Path, run_id: str | None, *, patience_s: float = PATIENCE_S) -> int:
    """Send the trace of a run (the newest without an id); how many spans it has. Blocks.

    Raises: UsageError without the extra or such a run; HostError when the collector did not take
    it in time.
    """
    try:
        trace = read_trace(database, run_id)
    except ReportError as error:
        raise UsageError(str(error)) from error
    _quieten()
    exporter = _exporter(patience_s)
    ready = _readable(trace, spans(trace))
    outcome: list[bool] = []

    def work() -> None:
        for start in range(0, len(ready), _TOGETHER):
            sent = exporter.export(ready[start : start + _TOGETHER])
            if sent.name != "SUCCESS":
                outcome.append(False)
                return
        outcome.append(True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(patience_s)
    if outcome != [True]:
        why = "did not take it" if outcome else f"did not answer within {patience_s:g} s"
        raise HostError(f"the trace was not exported: the OpenTelemetry collector {why}")
    return len(ready)


def _exporter(seconds: float) -> Any:  # noqa: ANN401 - of a package that may not be there
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        told = f"traces need the OpenTelemetry exporter: {INSTALL}"
        raise UsageError(told) from error
    return OTLPSpanExporter(timeout=seconds)


def _quieten() -> None:
    """The library's own log lines are not for stderr: one line of ours tells what went wrong."""
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())


def _readable(trace: Trace, made: Iterable[Span]) -> "Sequence[ReadableSpan]":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    named = {"service.name": "harness-batch", "service.version": __version__}
    resource = Resource.create(named)
    scope = InstrumentationScope(mapping_version(), __version__)
    whole = trace_id(trace.run.run_id)

    def context(span_id: int) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(whole, span_id, is_remote=False, trace_flags=flags)

    return [
        ReadableSpan(
            name=span.name,
            context=context(span.id),
            parent=None if span.parent_id is None else context(span.parent_id),
            resource=resource,
            attributes=dict(span.attributes),
            kind=SpanKind.CLIENT if span.outward else SpanKind.INTERNAL,
            status=Status(StatusCode.OK)
            if span.error is None
            else Status(StatusCode.ERROR, span.error),
            start_time=_nanoseconds(span.started_at),
            end_time=_nanoseconds(span.finished_at),
            instrumentation_scope=scope,
        )
        for span in made
    ]


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000
