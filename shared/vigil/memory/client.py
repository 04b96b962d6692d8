"""Asks the memory service over the bus, for the services that stand on it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..bus.bus import Bus
from ..errors import InvalidInput, NotFound, Unavailable, VigilError
from ..observe import trace
from ..subjects import Scope
from . import questions
from .operation import operation_of
from .operations.maintain import Maintain, Maintained
from .questions import Question, Refused

CODE_HEADER: Final = "Nats-Service-Error-Code"
TIMEOUT_S: Final = 5.0

_refused: Final = msgspec.json.Decoder(Refused).decode


class Conflict(VigilError):
    """It can't be done as things stand; the reason is for a person to read."""


class NotNow(Unavailable):
    """The service answers that it can't do it now; the reason is for a person to read."""


class MemoryClient:
    """Asks on behalf of one service. It knows no scopes of its own: each question names one."""

    def __init__(self, bus: Bus, timeout_s: float = TIMEOUT_S) -> None:
        self._bus = bus
        self._timeout_s = timeout_s

    async def ask(self, scope: Scope, question: Question, *, timeout_s: float = 0.0) -> Any:
        """Ask one question about `scope`; return the reply of its operation.

        Raises:
            InvalidInput: the service refuses it, naming field and reason.
            NotFound: what it is about isn't in that scope.
            Conflict: it can't be done as things stand.
            Unavailable: no memory service, or it can't now. After OutcomeUnknown a write may have
                happened.
        """
        operation = operation_of(type(question))
        subject = scope.question(operation.name)
        return msgspec.json.decode(
            await self._ask(subject, question, timeout_s), type=operation.reply
        )

    async def maintain_all(self, question: Maintain, *, timeout_s: float = 60.0) -> Maintained:
        """Run a pass over every scope. Raises: as :meth:`ask`."""
        data = await self._ask(questions.MAINTAIN_ALL, question, timeout_s)
        return msgspec.json.decode(data, type=Maintained)

    async def _ask(self, subject: str, question: Question, timeout_s: float) -> bytes:
        headers = {trace.HEADER: trace.passed_on(trace.current.get())}
        msg = await self._bus.ask(
            subject,
            msgspec.json.encode(question),
            timeout=timeout_s or self._timeout_s,
            headers=headers,
        )
        if msg.headers and CODE_HEADER in msg.headers:
            raise error_of(msg.data)
        return msg.data


def error_of(data: bytes) -> VigilError:
    """Return the error that a refusal stands for."""
    try:
        refused = _refused(data)
    except msgspec.MsgspecError:
        return Unavailable("the memory service failed")
    if refused.status == 404:
        return NotFound(refused.reason)
    if refused.status == 409:
        return Conflict(refused.reason)
    if refused.status == 422:
        return InvalidInput(refused.field, refused.reason)
    return NotNow(refused.reason)
