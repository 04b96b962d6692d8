"""Dead letters: what a service could not use, kept with the cause for a person to see.

A letter is stored at least once under one id, which is made of where the message lies, so that
every try, of every replica, makes the same. The first one counts; a broker that remembers the id
drops the others.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import structlog

from ..bus.bus import Bus, Message
from ..contracts import DEAD_LETTER_BYTES_MAX, DeadLetter, encode
from ..errors import VigilError
from ..observe import metrics, trace
from ..observe.metrics import Metrics
from ..subjects import SessionKey, token_of
from .patience import ANY, Patience

log = structlog.get_logger("vigil.worker")

NOBODY: Final = "_"
"""In the subject of a letter, where the message names no agent or thread that is one."""


def id_of(service: str, stream: str, seq: int) -> str:
    """Return the id of the letter about a message.

    Three services had forms of their own before there was one; theirs stay, or a letter of before
    an update and its repeat after it were two.

    >>> id_of("memory", "SESSIONS", 7), id_of("cortex", "SESSIONS", 7)
    ('memory-SESSIONS-7', 'SESSIONS-7')
    """
    if service in ("cortex", "gateway"):
        return f"{stream}-{seq}"
    if service == "scheduler":
        return f"dead-{token_of(service, stream, str(seq))}"
    return f"{service}-{stream}-{seq}"


def build(
    service: str,
    message: Message,
    cause: str,
    key: SessionKey,
    *,
    now: datetime,
    effect_id: str | None = None,
    bytes_max: int = DEAD_LETTER_BYTES_MAX,
) -> DeadLetter:
    """Build the letter about `message`. Pure.

    Args:
        key: whose it is; it's listed there.
        effect_id: the send or the call that died, if that is what it is about.
        bytes_max: how much of the message is kept.
    """
    return DeadLetter(
        id=id_of(service, message.stream, message.seq),
        service=service,
        stream=message.stream,
        subject=message.subject,
        seq=message.seq,
        cause=cause,
        data=message.data[:bytes_max],
        at=now,
        session_key="" if key.thread == NOBODY else str(key),
        effect_id=effect_id,
    )


async def bury(
    bus: Bus,
    counts: Metrics,
    letter: DeadLetter,
    message: Message,
    place: SessionKey,
    *,
    errors: tuple[type[VigilError], ...] = ANY,
) -> None:
    """Store a letter, however long that takes; count it and log it. A repeat stores nothing.

    Args:
        place: under whose subject it lies; mostly whose it is.
        errors: what is tried again; anything else is raised.
    """
    headers = {trace.HEADER: trace.passed_on(message.header(trace.HEADER))}
    # The broker knows an id for the whole stream, and two services may give up one message.
    msg_id = f"{letter.service}-{letter.stream}-{letter.seq}"
    subject, data = place.dead(letter.service), encode(letter)
    patience = Patience(f"{letter.service}.bury", errors=errors)
    await patience.run(lambda: bus.publish(subject, data, headers, msg_id=msg_id))
    counts.count(metrics.DEAD_LETTERS)
    log.warning(
        "dead letter",
        action=f"{letter.service}.dead",
        letter=letter.id,
        session=letter.session_key,
        subject=letter.subject,
        seq=letter.seq,
        effect=letter.effect_id,
        cause=letter.cause,
    )
