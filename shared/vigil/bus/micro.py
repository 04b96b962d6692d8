"""Answering questions by the micro-service API of NATS: any of its tools can find a service.

An endpoint is a subject and a function from request to answer. Requests of one endpoint are
answered at the same time, up to a limit; those above it wait.

Every request names where its answer goes, and a service that answered anywhere would let whoever
may ask publish anywhere. So only those are taken whose answers go to ``rpc.answer.``
(docs/adr/0014): ``nats --inbox-prefix rpc.answer.operator micro stats memory``. What a consumer
pushed is none.

Source: NATS ADR-32 (micro services), with ``Nats-Service-Error`` and ``Nats-Service-Error-Code``.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.micro.request import Request as MicroRequest
from nats.micro.service import EndpointStats, Service, ServiceConfig

from ..errors import Unavailable, VigilError
from .bus import Bus

log = structlog.get_logger("vigil.micro")

ANSWERS: Final = "rpc.answer."
"""Where answers go: see :func:`vigil.topology.answers_prefix`."""
FAULT: Final = 500
STOP_GRACE_S: Final = 3.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it came. `subject` is the one it was asked on."""

    subject: str
    data: bytes
    headers: Mapping[str, str]


Handle = Callable[[Request], Awaitable[bytes]]
"""Answers a request. Raises: Refusal; anything else is a fault of ours, answered with 500."""


class Rpc(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked where."""

    name: str
    """Letters, digits, "-" and "_"."""
    subject: str
    """May be a wildcard."""
    handle: Handle
    is_for_each: bool = False
    """Each replica answers; else one of them does."""


class Refusal(VigilError):
    """A question that is answered with an error. `code` is as of HTTP."""

    def __init__(self, code: int, description: str, data: bytes) -> None:
        super().__init__(f"{code} {description}")
        self.code = code
        self.description = description
        self.data = data


class _Tally:
    """What the API tells of an endpoint. Times are nanoseconds."""

    __slots__ = ("errors", "last_error", "requests", "time_ns")

    def __init__(self) -> None:
        self.requests = self.errors = self.time_ns = 0
        self.last_error: str | None = None


class _Guarded:
    """The connection as the API sees it: it hears no question whose answer goes elsewhere."""

    def __init__(self, bus: Bus) -> None:
        self._nc = bus.connection
        self._nuid = bus.connection._nuid

    async def subscribe(
        self, subject: str, queue: str = "", cb: Callable[[Msg], Awaitable[None]] | None = None
    ) -> Any:
        async def heard(msg: Msg) -> None:
            if cb is not None and msg.reply.startswith(ANSWERS):
                await cb(msg)

        return await self._nc.subscribe(subject, queue=queue, cb=heard)

    async def flush(self) -> None:
        await self._nc.flush()


class _Answering:
    """The requests in hand."""

    def __init__(self, concurrency_max: int) -> None:
        self._slots = asyncio.Semaphore(concurrency_max)
        self._tasks: set[asyncio.Task[None]] = set()
        self.tallies: dict[str, _Tally] = {}

    def handler(self, endpoint: Rpc) -> Callable[[MicroRequest], Awaitable[None]]:
        """Return what takes the requests of an endpoint."""
        tally = self.tallies[endpoint.name] = _Tally()

        async def take(request: MicroRequest) -> None:
            # The API waits for each answer before it takes the next request: so hand it on.
            await self._slots.acquire()
            task = asyncio.create_task(self._answer(endpoint, tally, request))
            self._tasks.add(task)
            task.add_done_callback(self._done)

        return take

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._slots.release()

    async def _answer(self, endpoint: Rpc, tally: _Tally, request: MicroRequest) -> None:
        begun_ns = time.perf_counter_ns()
        # The connection may be gone by now: whoever asked will ask again.
        with contextlib.suppress(nats.errors.Error):
            try:
                asked = Request(
                    subject=request.subject, data=request.data, headers=request.headers or {}
                )
                await request.respond(await endpoint.handle(asked))
            except Refusal as error:
                tally.errors += 1
                tally.last_error = f"{error.code}:{error.description}"
                await request.respond_error(str(error.code), error.description, error.data)
            except Exception as error:
                tally.errors += 1
                tally.last_error = f"{FAULT}:{type(error).__name__}"
                log.exception("can't answer", action="micro.fault", subject=request.subject)
                await request.respond_error(str(FAULT), "a fault of the service; it was logged")
        tally.requests += 1
        tally.time_ns += time.perf_counter_ns() - begun_ns

    def fill_in(self, stats: EndpointStats) -> None:
        """Put our own figures into the API's, which only know how long handing on took."""
        tally = self.tallies[stats.name]
        stats.num_requests = tally.requests
        stats.num_errors = tally.errors
        stats.last_error = tally.last_error
        stats.processing_time = tally.time_ns
        stats.average_processing_time = tally.time_ns // max(tally.requests, 1)

    async def stop(self) -> None:
        """Finish what is in hand, for some seconds at most."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=STOP_GRACE_S)
        for task in late:
            task.cancel()


@contextlib.asynccontextmanager
async def serving(
    bus: Bus,
    endpoints: Sequence[Rpc],
    *,
    name: str,
    version: str,
    description: str,
    instance: str,
    concurrency_max: int,
) -> AsyncIterator[None]:
    """Answer for as long as the block lasts.

    Args:
        instance: an id of this replica, for what each of them answers.

    Raises:
        Unavailable: the broker does not answer.
    """
    answering = _Answering(concurrency_max)
    config = ServiceConfig(
        name=name,
        version=version,
        description=description,
        queue_group=name,
        stats_handler=answering.fill_in,
        metadata={"instance": instance},
    )
    service = Service(_Guarded(bus), config)  # type: ignore[arg-type]  # it uses nothing else
    try:
        await service.start()
        for one in endpoints:
            await service.add_endpoint(
                name=one.name,
                subject=one.subject,
                handler=answering.handler(one),
                queue_group=f"{name}-{instance}" if one.is_for_each else None,
            )
        await bus.connection.flush()
    except (nats.errors.Error, TimeoutError) as error:
        raise Unavailable(f"can't listen for questions: {error!r}") from error
    try:
        yield
    finally:
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            await service.stop()
        await answering.stop()
