"""The circuits of a call: the model's, and that of the session that asks.

Which failures are a model's own, and what a session is told while its circuit is open, stands here.
What a server says of one request (400, 422, that it is too long) is that session's matter, and
shows that the server is there: nobody's failing session keeps others from a model that works. Keys
and accounts (401 to 404) are everybody's, as is overload. Silence, and what breaks off or can't be
read, is once several sessions met with it (`CallsInVain`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from vigil.circuits import SESSION, CircuitOpen, Circuits, Passed

from ..model import (
    ENDLESS,
    REDIRECTED,
    REFUSED_BY_CIRCUIT,
    REFUSED_BY_LOOP,
    SPOILED,
    TIMEOUT,
    TOO_LONG,
    UNUSABLE,
    ModelError,
)

_OF_ALL: Final = ("401", "402", "403", "404", REDIRECTED)
_OF_ANSWER: Final = (ENDLESS, SPOILED)
"""What shows that the server is there: it's the model's answer that is wrong."""
_IN_VAIN: Final = (TIMEOUT, UNUSABLE)
_OF_REQUEST: Final = ("400", "422", TOO_LONG)


class CallsInVain:
    """Which sessions waited in vain for a model that answered nobody since.

    A model that falls silent on one conversation, as over a prompt that takes it too long, or whose
    long answers a proxy cuts off, may answer all others: so that conversation counts once, however
    often it asks again.
    """

    def __init__(self) -> None:
        self._waited: dict[str, set[str]] = {}

    def counts(self, model: str, session: str) -> bool:
        """Take in that a session waited in vain; whether that counts against the model."""
        waited = self._waited.setdefault(model, set())
        is_first = session not in waited
        waited.add(session)
        return is_first

    def heard(self, model: str) -> None:
        """Take in that the model answered."""
        self._waited.pop(model, None)


T = TypeVar("T")


async def guarded(
    circuits: Circuits,
    in_vain: CallsInVain,
    model: str,
    session: str,
    call: Callable[[], Awaitable[T]],
) -> T:
    """Make one call of a model, unless its circuit is open.

    Raises:
        ModelError: it is; nothing was sent, and `retry_after_s` says when to come again.
    """
    try:
        passed = await circuits.enter(f"model:{model}")
    except CircuitOpen as error:
        reason = str(error).replace(f"model:{model}", f"the model {model}", 1)
        raise ModelError(
            reason,
            is_retryable=True,
            retry_after_s=error.wait_s,
            is_refused=True,
            kind=REFUSED_BY_CIRCUIT,
        ) from error
    try:
        answer = await call()
    except ModelError as error:
        is_trial = circuits.state(passed.component) != "closed"
        if error.kind in _IN_VAIN and not (in_vain.counts(model, session) or is_trial):
            await circuits.unsaid(passed)
        else:
            await _failed(circuits, passed, error)
        raise
    except BaseException:
        await circuits.unsaid(passed)
        raise
    in_vain.heard(model)
    await circuits.succeeded(passed)
    return answer


async def unlooped(
    circuits: Circuits, session: str, call: Callable[[], Awaitable[T]], *, is_direct: bool
) -> T:
    """Make one call for a session, unless it fails again and again by itself (C-4).

    A person who writes is always answered, and an answer closes the circuit.

    Args:
        is_direct: whether a person's message is thought of.

    Raises:
        ModelError: its circuit is open.
    """
    component = f"{SESSION}{session}"
    if circuits.state(component) == "closed":
        return await call()
    if is_direct:
        answer = await call()
        await circuits.recovered(component)
        return answer
    try:
        passed = await circuits.enter(component)
    except CircuitOpen as error:
        raise ModelError(
            str(error).replace(component, "this session", 1),
            is_retryable=True,
            retry_after_s=error.wait_s,
            is_refused=True,
            kind=REFUSED_BY_LOOP,
        ) from error
    try:
        answer = await call()
    except ModelError as error:
        if error.is_retryable or error.budget_at is not None:
            await circuits.unsaid(passed)
        else:
            await circuits.failed(passed, error.reason.partition(":")[0])
        raise
    except BaseException:
        await circuits.unsaid(passed)
        raise
    await circuits.succeeded(passed)
    return answer


async def _failed(circuits: Circuits, passed: Passed, error: ModelError) -> None:
    if is_of_server(error):
        left_s = await circuits.failed(passed, _reason(error), error.retry_after_s or 0.0)
        if error.is_retryable and left_s:
            error.retry_after_s = max(error.retry_after_s or 0.0, left_s)
    elif error.kind in (*_OF_REQUEST, *_OF_ANSWER):
        await circuits.succeeded(passed)
    else:
        await circuits.unsaid(passed)


def is_of_server(error: ModelError) -> bool:
    """Whether whoever asks next would fail, too.

    >>> is_of_server(ModelError("overloaded", is_retryable=True, kind="529"))
    True
    >>> is_of_server(ModelError("rejected", is_retryable=False, kind="400"))
    False
    """
    is_of_model = error.is_of_model and error.kind not in _OF_ANSWER
    return is_of_model and (error.is_retryable or error.kind in _OF_ALL)


def _reason(error: ModelError) -> str:
    """Return our own words: what the server added may be of one session's request."""
    head, status, _ = error.reason.partition(f"({error.kind})")
    return head + status
