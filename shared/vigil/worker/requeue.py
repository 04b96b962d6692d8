"""Asking a service to try again what became a dead letter: question and answer on the bus.

The gateway asks, the service whose letter it is answers once it has done it. Both may be
repeated: a wish that was carried out before is answered with `done`. Only then the gateway
writes that the letter is ended, so a crash in between leaves it open, to be asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Literal

import msgspec
import structlog

from ..bus.bus import Bus
from ..errors import InvalidInput, Unavailable, VigilError
from .outcomes import Terminal, TryLater

log = structlog.get_logger("vigil.worker")

ANSWER_TIMEOUT_S: Final = 6.0
WORK_TIMEOUT_S: Final = 4.0
"""How long a service may work on it before it answers `later`."""


class RequeueQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What died: the message at `seq` of `stream`, which was on `subject`."""

    letter_id: str
    stream: str
    seq: int
    subject: str
    by: str
    """The user who wants it."""
    effect_id: str | None = None
    """The send that no channel took, if that is what died."""


class RequeueReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it, and why not."""

    outcome: Literal["done", "refused", "later"]
    reason: str = ""


DONE: Final = RequeueReply(outcome="done")
GONE: Final = RequeueReply(outcome="refused", reason="it is no longer in the log")
FAULT: Final = "something went wrong; it was logged"


def subject_of(service: str) -> str:
    """Return where `service` is asked (it's one of ours)."""
    return f"rpc.requeue.{service}"


encode: Final = msgspec.json.Encoder().encode
decode_question: Final = msgspec.json.Decoder(RequeueQuestion).decode
decode_reply: Final = msgspec.json.Decoder(RequeueReply).decode


@contextlib.asynccontextmanager
async def answering(
    bus: Bus, service: str, again: Callable[[RequeueQuestion], Awaitable[RequeueReply]]
) -> AsyncIterator[None]:
    """Answer for as long as the block lasts; of several replicas, one does.

    Args:
        again: tries it once more; may raise what :mod:`.outcomes` lists.
    """

    async def answer(msg: Any) -> None:
        await bus.send(msg.reply, await _reply_to(service, msg.data, again))

    subscription = await bus.listen(subject_of(service), answer, queue=service)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the connection may be gone
            await subscription.unsubscribe()


async def _reply_to(
    service: str, data: bytes, again: Callable[[RequeueQuestion], Awaitable[RequeueReply]]
) -> bytes:
    """Return the answer to a question, as it goes out. Never raises, or the subscription ends."""
    try:
        question = decode_question(data)
        async with asyncio.timeout(WORK_TIMEOUT_S):
            reply = await again(question)
    except InvalidInput as error:
        reply = RequeueReply(outcome="refused", reason=f"still can't be read: {error}")
    except Terminal as error:
        reply = RequeueReply(outcome="refused", reason=str(error))
    except (Unavailable, TryLater, TimeoutError) as error:
        reply = RequeueReply(outcome="later", reason=str(error) or "it takes too long")
    except Exception as error:
        log.error("can't requeue", action=f"{service}.requeue", error=repr(error))
        reason = str(error) if isinstance(error, VigilError) else FAULT
        reply = RequeueReply(outcome="refused", reason=reason)
    return encode(reply)
