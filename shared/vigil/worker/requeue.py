"""Asking a service to try again what became a dead letter: question and answer on the bus.

The gateway asks, the service whose letter it is answers once it has done it. Both may be
repeated: a wish that was carried out before is answered with `done`. Only then the gateway
writes that the letter is ended, so a crash in between leaves it open, to be asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from ..errors import InvalidInput, Unavailable

ANSWER_TIMEOUT_S: Final = 6.0
WORK_TIMEOUT_S: Final = 4.0
"""How long a service may work on it before it answers `later`."""


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What died: the message at `seq` of `stream`, which was on `subject`."""

    letter_id: str
    stream: str
    seq: int
    subject: str
    by: str
    """The user who wants it."""
    effect_id: str | None = None
    """The send that no channel took, if that is what died."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it, and why not."""

    outcome: Literal["done", "refused", "later"]
    reason: str = ""


DONE: Final = Reply(outcome="done")
GONE: Final = Reply(outcome="refused", reason="it is no longer in the log")
FAULT: Final = "something went wrong; it was logged"


def subject_of(service: str) -> str:
    """Return where `service` is asked (it's one of ours)."""
    return f"rpc.requeue.{service}"


encode: Final = msgspec.json.Encoder().encode
decode_question: Final = msgspec.json.Decoder(Question).decode
decode_reply: Final = msgspec.json.Decoder(Reply).decode


async def reply_to(
    data: bytes,
    again: Callable[[Question], Awaitable[Reply]],
    on_fault: Callable[[Exception], str],
    *,
    use: str = "read",
) -> bytes:
    """Have `again` try it once more; return the answer to a question, as it goes out.

    Never raises, or the subscription would end.

    Args:
        on_fault: logs what else went wrong, and returns what the person is told of it.
        use: what can't be done with what is refused as before.
    """
    try:
        question = decode_question(data)
        async with asyncio.timeout(WORK_TIMEOUT_S):
            reply = await again(question)
    except InvalidInput as error:
        reply = Reply(outcome="refused", reason=f"still can't be {use}: {error}")
    except (Unavailable, TimeoutError) as error:
        reply = Reply(outcome="later", reason=str(error) or "it takes too long")
    except Exception as error:
        reply = Reply(outcome="refused", reason=on_fault(error))
    return encode(reply)
