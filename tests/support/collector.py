"""A collector for OTLP/HTTP on loopback: it decodes what it gets with the official protobufs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What arrived. `status` is what it answers."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.is_hanging = threading.Event()
        self.release = threading.Event()
        self.release.set()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def spans(self) -> dict[str, list[Span]]:
        """Return the spans by the `service.name` that they came from."""
        found: dict[str, list[Span]] = {}
        for request in self.requests:
            for part in request.resource_spans:
                name = resource_of(part)["service.name"]
                for scope in part.scope_spans:
                    found.setdefault(name, []).extend(scope.spans)
        return found

    @contextlib.contextmanager
    def running(self) -> Iterator[Collector]:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.release.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def resource_of(part: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in part.resource.attributes}


def attributes_of(span: Span) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes
    }


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if not collector.release.is_set():
                collector.is_hanging.set()
                collector.release.wait()
            if self.path == "/v1/traces" and collector.status == 200:
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            return

    return Handler
