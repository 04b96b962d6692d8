"""What the broker answers to a publish, and which kind of failure each refusal is."""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import Unavailable, VigilError, WrongLastSequence

ERR_WRONG_LAST_SEQ: Final = 10071
ERR_NO_MESSAGE: Final = 10037
ERR_STREAM_NOT_FOUND: Final = 10059
ERR_CONSUMER_NOT_FOUND: Final = 10014
ERR_NO_PEERS: Final = 10005
"""A cluster too few of whose nodes are up for what is asked."""
ERR_UNDER_WAY: Final = (10158, 10164)
"""In a cluster: another write with that message id, or to that subject, is not settled yet."""


class BusError(VigilError):
    """The broker refused a request; the caller asked for something it may not or can't have."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} ({code})")
        self.code = code


class Ack(msgspec.Struct, frozen=True):
    """Where a publish was stored. `is_duplicate`: the broker had that message id already."""

    seq: int
    is_duplicate: bool = False


class PublishRefusal(msgspec.Struct):
    """Why a publish was not stored. `code` is like HTTP's, `err_code` JetStream's own."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class PublishReply(msgspec.Struct):
    """The answer to a publish, as it comes."""

    seq: int = 0
    duplicate: bool = False
    error: PublishRefusal | None = None


decode_reply: Final = msgspec.json.Decoder(PublishReply).decode


def _last_in(description: str) -> int:
    """Find the sequence that was expected in vain.

    >>> _last_in("wrong last sequence: 1797")
    1797
    """
    number = description.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


def refusal(subject: str, error: PublishRefusal) -> VigilError:
    """Return the error that a refused publish to `subject` raises."""
    text = f"{subject}: {error.description}"
    if error.err_code == ERR_WRONG_LAST_SEQ:
        return WrongLastSequence(text, _last_in(error.description))
    if error.code == 503 or error.err_code in ERR_UNDER_WAY:
        return Unavailable(text)
    return BusError(error.err_code, text)
