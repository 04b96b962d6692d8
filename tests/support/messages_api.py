"""A local server that speaks the Messages API over HTTP and SSE, for tests and for trying out.

It checks requests as strictly as the real one where a mistake of ours could hide (roles that
don't alternate, empty content, tool calls without results, removed parameters), and it can
fail in every way that was seen in the wild. It thinks nothing: it plays back `replies`, and
when those are used up it asks `behave`.

    python -m tests.support.messages_api --port 8977
    ANTHROPIC_BASE_URL=http://127.0.0.1:8977 vigil up
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from tests.support.messages_assistant import scheduling_assistant
from tests.support.messages_replies import Fault, Reply, calls, fails, says
from tests.support.messages_rules import mistakes
from tests.support.too_long import ANTHROPIC

__all__ = [
    "Behave", "Fault", "MessagesApi", "Reply", "Request", "Wire", "calls", "chunks", "fails",
    "messages_api", "says", "scheduling_assistant",
]  # fmt: skip

Behave = Callable[[dict[str, Any]], Reply]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it came in. Header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Wire(NamedTuple):
    """What a server speaks, which plays back replies that are written for the Messages API."""

    check: Callable[[str, str, dict[str, str], bytes], tuple[Reply | None, dict[str, Any]]]
    """Method, path, headers and what came after them -> what is wrong, and the body."""
    read: Callable[[dict[str, Any]], dict[str, Any]]
    """A body -> what it would be for the Messages API."""
    message: Callable[[Reply, dict[str, Any]], dict[str, Any]]
    """An answer that isn't streamed."""
    events: Callable[[Reply, dict[str, Any]], Iterator[tuple[str, str]]]
    """An answer's events: name and data."""
    error: Callable[[Reply], dict[str, Any]]
    """What a failure is told with."""


class MessagesApi:
    """The running server."""

    def __init__(self, behave: Behave | None = None, wire: Wire | None = None) -> None:
        self.behave: Behave = behave or scheduling_assistant
        self.wire: Final = wire or MESSAGES
        self.replies: deque[Reply] = deque()
        self.window = 0
        """Tokens, of four bytes each, that a request may have; 0: as many as it likes."""
        self.too_long = ANTHROPIC
        """How a longer one is refused."""
        self.refused = 0
        """How many were."""
        self.requests: list[Request] = []
        self.open_connections = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("not started")
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1].body

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.open_connections += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            self.open_connections -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (item.partition(":") for item in head[1:] if item)
        }
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        path = path.partition("?")[0]
        problem, body = self.wire.check(method, path, headers, raw)
        self.requests.append(Request(path=path, headers=headers, body=body))
        problem = problem or self._overlong(len(raw) // 4, body)
        if problem is not None:
            await self._answer_error(writer, problem)
        elif path.endswith("/count_tokens"):
            await answer_json(writer, 200, {"input_tokens": len(raw) // 4})
        else:
            reply = self.replies.popleft() if self.replies else self.behave(self.wire.read(body))
            await self._play(reply, body, reader, writer)

    def _overlong(self, sent: int, body: dict[str, Any]) -> Reply | None:
        answer = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if not self.window or self.too_long.fits(sent, answer, self.window):
            return None
        self.refused += 1
        return self.too_long.told(sent, answer, self.window)

    async def _play(
        self,
        reply: Reply,
        body: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if reply.fault == "drop":
            writer.close()
        elif reply.fault == "hang":
            await reader.read()  # until the client gives up
        elif reply.fault in ("not_a_stream", "empty"):
            page = b"<html>Welcome to the hotel</html>" if reply.fault == "not_a_stream" else b""
            await _answer(writer, 200, page, "text/html", reply.headers)
        elif reply.status != 200:
            await self._answer_error(writer, reply)
        elif body.get("stream"):
            await self._stream(reply, body, reader, writer)
        else:
            await answer_json(writer, 200, self.wire.message(reply, body), reply.headers)

    async def _stream(
        self,
        reply: Reply,
        body: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        writer.write(_head(200, {"content-type": "text/event-stream", **reply.headers}))
        events = list(self.wire.events(reply, body))
        middle = max(len(events) // 2, 2)
        if reply.fault == "out_of_order":
            events = events[2:]
        for index, (name, data) in enumerate(events):
            breaks = index == middle and reply.fault not in (None, "out_of_order")
            if breaks and await self._break(reply, name, reader, writer):
                return
            _write_event(writer, name, data)
            await writer.drain()
            if reply.delay_s:
                await asyncio.sleep(reply.delay_s)
        await _end(writer)

    async def _break(
        self, reply: Reply, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Do in the middle of a stream what `reply.fault` says; return whether that was all."""
        await writer.drain()
        match reply.fault:
            case "cut":
                writer.transport.abort()
            case "stall":
                await reader.read()
            case "short":
                await _end(writer)
            case "invalid_json":
                _write_event(writer, name, '{"type": "content_block_delta", "ind')
                return False
            case _:
                _write_event(writer, name and "error", json.dumps(self.wire.error(reply)))
                await _end(writer)
        return True

    async def _answer_error(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        body = self.wire.error(reply) | {"request_id": "req_1"}
        await answer_json(writer, reply.status, body, reply.headers)


@contextlib.asynccontextmanager
async def messages_api(behave: Behave | None = None, port: int = 0) -> AsyncIterator[MessagesApi]:
    """Run a server on loopback for the length of a block."""
    api = MessagesApi(behave)
    await api.start(port)
    try:
        yield api
    finally:
        await api.close()


# ---------------------------------------------------------------- what it accepts


def _check_request(
    method: str, path: str, headers: dict[str, str], raw: bytes
) -> tuple[Reply | None, dict[str, Any]]:
    if method != "POST" or path not in ("/v1/messages", "/v1/messages/count_tokens"):
        return fails(404, "not_found_error", error_message=f"no {method} {path}"), {}
    is_bearer = headers.get("authorization", "").startswith("Bearer ")
    if not (is_bearer or headers.get("x-api-key")):
        return fails(401, "authentication_error", error_message="no credentials"), {}
    if "anthropic-version" not in headers:
        return fails(400, "invalid_request_error", error_message="anthropic-version: missing"), {}
    try:
        body = json.loads(raw)
    except ValueError:
        return fails(400, "invalid_request_error", error_message="not JSON"), {}
    problem = next(mistakes(body, needs_max_tokens=path == "/v1/messages"), None)
    if problem is not None:
        return fails(400, "invalid_request_error", error_message=problem), body
    return None, body


# ---------------------------------------------------------------- what it answers


def _message(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    blocks = [
        {**{k: v for k, v in b.items() if k != "raw_input"}, "input": b.get("input", {})}
        if b["type"] == "tool_use"
        else b
        for b in reply.blocks
    ]
    return {
        "id": f"msg_{hashlib.sha256(json.dumps(body).encode()).hexdigest()[:16]}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or body["model"],
        "content": blocks,
        "stop_reason": _stop_reason(reply),
        "stop_sequence": None,
        "usage": reply.usage,
    }


def _stop_reason(reply: Reply) -> str | None:
    if reply.stop_reason != "":
        return reply.stop_reason
    return "tool_use" if any(b["type"] == "tool_use" for b in reply.blocks) else "end_turn"


def _named_events(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, data in _events(reply, body):
        yield name, json.dumps({"type": name, **data})


def _events(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    message = _message(reply, body) | {"content": [], "stop_reason": None}
    usage = {k: v for k, v in reply.usage.items() if k != "output_tokens"}
    message["usage"] = usage | {"output_tokens": 1}
    yield "message_start", {"message": message}
    yield "ping", {}
    for index, block in enumerate(reply.blocks):
        start, deltas = _parts(block, reply.chunk)
        yield "content_block_start", {"index": index, "content_block": start}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    counted = {"output_tokens": reply.usage.get("output_tokens", 0)}
    yield "message_delta", {"delta": delta, "usage": counted}
    yield "message_stop", {}


def _parts(block: dict[str, Any], chunk: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Split a block into its beginning and its deltas."""
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": t} for t in chunks(block["text"], chunk)]
            return {"type": "text", "text": ""}, deltas
        case "tool_use":
            raw = block.get("raw_input")
            raw = json.dumps(block["input"]) if raw is None else raw
            start = {**{k: v for k, v in block.items() if k != "raw_input"}, "input": {}}
            parts = ["", *chunks(raw, chunk)]
            return start, [{"type": "input_json_delta", "partial_json": p} for p in parts]
        case "thinking":
            thoughts = chunks(block["thinking"], chunk)
            signature = {"type": "signature_delta", "signature": block["signature"]}
            deltas = [{"type": "thinking_delta", "thinking": t} for t in thoughts]
            return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
        case _:
            return block, []


def chunks(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _write_event(writer: asyncio.StreamWriter, name: str, data: str) -> None:
    named = f"event: {name}\n" if name else ""
    chunk = f"{named}data: {data}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _head(status: int, headers: dict[str, str], length: int | None = None) -> bytes:
    how = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
    lines = [f"{name}: {value}" for name, value in (headers | how).items()]
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, "connection: close", "", ""]).encode()


def _error(reply: Reply) -> dict[str, Any]:
    error: dict[str, Any] = {"type": reply.error_type, "message": reply.error_message}
    error |= {"details": {"error_code": reply.error_code}} if reply.error_code else {}
    return {"type": "error", "error": error}


async def answer_json(
    writer: asyncio.StreamWriter, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:
    await _answer(writer, status, json.dumps(body).encode(), "application/json", headers or {})


async def _answer(
    writer: asyncio.StreamWriter, status: int, body: bytes, kind: str, headers: dict[str, str]
) -> None:
    writer.write(_head(status, {"content-type": kind, **headers}, len(body)) + body)
    await writer.drain()


MESSAGES: Final = Wire(_check_request, lambda body: body, _message, _named_events, _error)


def main() -> None:
    parser = argparse.ArgumentParser(description="A local server that speaks the Messages API")
    parser.add_argument("--port", type=int, default=8977)
    arguments = parser.parse_args()

    def behave(body: dict[str, Any]) -> Reply:
        return msgspec.structs.replace(scheduling_assistant(body), delay_s=0.05, chunk=8)

    async def run() -> None:
        async with messages_api(behave, arguments.port) as api:
            print(f"ANTHROPIC_BASE_URL={api.url}", flush=True)
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())


if __name__ == "__main__":
    main()
