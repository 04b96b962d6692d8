"""The questions that memory answers on the bus, as endpoints of the NATS micro-service API.

Whose memory a question is about stands in its subject and nowhere else. What is wrong with a
question is told with field and reason, what is wrong with us is logged and told as a fault;
neither ends the service.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from vigil.bus.micro import Handle, Refusal, Request, Rpc
from vigil.errors import InvalidInput, NotFound, Unavailable, VigilError
from vigil.memory.client import Conflict
from vigil.memory.operation import operations
from vigil.memory.operations.maintain import Maintain
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.questions import (
    ERASE,
    MAINTAIN_ALL,
    REBUILD,
    SERVICE,
    Erased,
    Rebuild,
    Rebuilding,
    Refused,
    Reply,
)
from vigil.observe import metrics, trace
from vigil.observe.metrics import Metrics
from vigil.subjects import Scope

from . import checks
from .answers import Answering

log = structlog.get_logger("vigil.memory")

DESCRIPTION: Final = "What Vigil's agents know: save, recall, list, forget, associate, undo"
REBUILT: Final = Rebuilding(what="all", done=0, total=0)
_NOT_FOR_HEADERS: Final = re.compile(r"[^\x20-\x7e]")
_STATUS: Final[tuple[tuple[type[VigilError], int], ...]] = (
    (InvalidInput, 422),
    (NotFound, 404),
    (Conflict, 409),
    (Unavailable, 503),
)


class Service:
    """The endpoints of one replica."""

    def __init__(
        self,
        answering: Answering,
        counts: Metrics,
        rebuild: Callable[[Rebuild], Rebuilding],
        erase: Callable[[str], Awaitable[Erased]],
    ) -> None:
        self._answering = answering
        self._counts = counts
        self._rebuild = rebuild
        self._erase = erase

    def endpoints(self) -> list[Rpc]:
        """Return everything that can be asked."""
        of_scopes = [
            Rpc(name=op, subject=f"rpc.{SERVICE}.{op}.*.*", handle=self._handler(op))
            for op in operations()
        ]
        return [
            *of_scopes,
            Rpc(name="maintain-all", subject=MAINTAIN_ALL, handle=self._maintain_all),
            Rpc(name="rebuild", subject=REBUILD, handle=self._rebuild_here, is_for_each=True),
            Rpc(name="erase", subject=f"{ERASE}.*", handle=self._erase_here, is_for_each=True),
        ]

    def _handler(self, op: str) -> Handle:
        kind = operations()[op].question

        async def answer(request: Request) -> bytes:
            trace.current.set(trace.passed_on(request.headers.get(trace.HEADER)))
            begun = time.monotonic()
            try:
                scope = Scope.of_subject(request.subject)
                question = checks.decode(request.data, kind)
                reply = await self._answering.answer(scope, question, via="rpc")
            except VigilError as error:
                raise refusal(error) from error
            if isinstance(question, Recall) and isinstance(reply, Recalled):
                self._observe_recall(question, reply, time.monotonic() - begun)
            return msgspec.json.encode(reply)

        return answer

    def _observe_recall(self, question: Recall, reply: Recalled, took_s: float) -> None:
        state = "degraded" if reply.degraded else "whole"
        self._counts.observe(metrics.MEMORY_RECALL_SECONDS, took_s, question.mode, state)

    async def _maintain_all(self, request: Request) -> bytes:
        try:
            question = checks.decode(request.data, Maintain)
            reply: Reply = await self._answering.maintain_all(question)
        except VigilError as error:
            raise refusal(error) from error
        return msgspec.json.encode(reply)

    async def _rebuild_here(self, request: Request) -> bytes:
        try:
            question = checks.decode(request.data, Rebuild)
        except VigilError as error:
            raise refusal(error) from error
        return msgspec.json.encode(self._rebuild(question))

    async def _erase_here(self, request: Request) -> bytes:
        try:
            reply = await self._erase(request.subject.rpartition(".")[2])
            self._answering.check_room()
        except VigilError as error:
            raise refusal(error) from error
        return msgspec.json.encode(reply)


def refusal(error: VigilError) -> Refusal:
    """Return how an error is told: its kind as a status, field and reason for a person."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 503)
    if isinstance(error, InvalidInput):
        refused = Refused(status=status, reason=error.reason, field=error.field)
    else:
        refused = Refused(status=status, reason=str(error))
    description = _NOT_FOR_HEADERS.sub("?", str(error))[:200]
    return Refusal(status, description, msgspec.json.encode(refused))
