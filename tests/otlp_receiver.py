"""A collector on loopback that takes OTLP over HTTP, keeps what it got, and can misbehave."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@define
class Received:
    """What came, and where to send it."""

    url: str
    requests: list[ExportTraceServiceRequest] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)
    paths: list[str] = field(factory=list)

    def spans(self) -> list[Any]:
        """All spans, in order."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


def attributes(span: Any) -> dict[str, Any]:
    """Of a span, as plain values."""
    return {pair.key: _plain(pair.value) for pair in span.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(one) for one in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collector(*, status: int = 200, silent: bool = False) -> Iterator[Received]:
    """Answers with `status`; a silent one takes the request and never answers."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.headers.append({k.lower(): v for k, v in self.headers.items()})
            received.paths.append(self.path)
            received.requests.append(ExportTraceServiceRequest.FromString(body))
            if silent:
                over.wait(30)
                return
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        received = Received(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield received
        finally:
            over.set()
            server.shutdown()
            thread.join()
