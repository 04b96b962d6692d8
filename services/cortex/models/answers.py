"""What comes in, whichever wire it came by: how much of it is kept, and what it is stored as.

What a turn can't hold is refused or cut while the stream runs, so that a server gone wild costs
neither memory nor the commit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast, get_args

import msgspec
import structlog

from vigil.contracts import Block, TextBlock, Usage

from ..model import UNUSABLE, ModelAnswer, ModelError, StopReason

log = structlog.get_logger("vigil.cortex")

ANSWER_BYTES_MAX: Final = 360_000
"""JSON bytes of one answer, text counted twice: a turn holds it as a row and as a send, beside
128 KiB of open follow-ups, and is at most 512 KiB (`vigil.contracts.TURN_BYTES_MAX`)."""
TEXT_MAX: Final = ANSWER_BYTES_MAX // 2
MARK_BYTES: Final = 200
"""Room for the mark that the reader sees below a text that was cut."""
ARGUMENT_BYTES_MAX: Final = 64_000
"""All tool arguments of one answer; an SDK may parse them anew with every delta."""
DEPTH_MAX: Final = 64
MODEL_LENGTH_MAX: Final = 200

BROKE_OFF: Final = "the model's answer broke off in the middle"
NO_ANSWER: Final = "the model's server sent no answer at all: base_url may lead to a page of it"
_STOP_REASONS: Final[frozenset[str]] = frozenset(get_args(StopReason))


class AnswerRoom:
    """How much of an answer can still be kept."""

    def __init__(self) -> None:
        self._left = ANSWER_BYTES_MAX
        self._arguments_left = ARGUMENT_BYTES_MAX
        self.is_full = False
        """Whether text had to be left out."""
        self.has_begun = False
        """Whether anything came that is of an answer."""

    def takes_text(self, text: str) -> bool:
        self._left -= 2 * size_of(text)
        self.is_full = self._left < 0
        return not self.is_full

    def take(self, size: int, *, is_argument: bool) -> None:
        """Count `size` bytes of something else. Raises: ModelError: they can't be kept."""
        self._left -= size
        if is_argument:
            self._arguments_left -= size
        if min(self._left, self._arguments_left) < 0:
            raise ModelError("the model's answer is too large to be kept", is_retryable=False)


def size_of(text: str) -> int:
    """Return the bytes that `text` takes in JSON."""
    return len(msgspec.json.encode(text)) - 2


def check_finished(room: AnswerRoom, *, is_finished: bool) -> None:
    """Raise ModelError for half a stream: nothing of it counts."""
    if not is_finished and not room.is_full:
        reason = BROKE_OFF if room.has_begun else NO_ANSWER
        raise ModelError(reason, is_retryable=True, kind=UNUSABLE)


@contextmanager
def shaped() -> Iterator[None]:
    """Have a conversion's errors told as an answer of another shape; asking again would not change
    that. Raises: ModelError."""
    try:
        yield
    except (
        AttributeError,
        TypeError,
        ValueError,
        KeyError,
        OverflowError,
        RecursionError,
    ) as error:
        reason = f"the model's answer has an unexpected shape ({error})"[:300]
        raise ModelError(reason, is_retryable=False) from error


def ended(answer: ModelAnswer, stop_reason: object, *, is_cut: bool) -> ModelAnswer:
    """Return an answer as it can be kept, with the reason that it stopped for.

    Raises:
        ModelError: it stopped for a reason that is not known here without a word; asking again
            would not change that.
    """
    blocks = answer.blocks
    if is_cut or sum(size_of(b.text) for b in blocks if isinstance(b, TextBlock)) > TEXT_MAX:
        return _cut(answer)
    if stop_reason not in _STOP_REASONS:
        reason = mend(str(stop_reason))[:64]
        if not any(isinstance(block, TextBlock) and block.text.strip() for block in blocks):
            text = f"the model stopped for an unknown reason: {reason}"
            raise ModelError(text, is_retryable=False)
        log.warning(
            "unknown stop reason", action="cortex.model", reason=reason, model=answer.usage.model
        )
        stop_reason = "unknown"
    return msgspec.structs.replace(answer, stop_reason=cast(StopReason, stop_reason))


def _cut(answer: ModelAnswer) -> ModelAnswer:
    """Keep the beginning of the text alone; half an answer may hold half a tool call.

    The core marks it for the reader, as it does what a provider cut.
    """
    text = answer.text
    spoken = len(text.encode()) // 3
    while (size := size_of(text)) > TEXT_MAX - MARK_BYTES:
        text = text[: min(len(text) - 1, len(text) * (TEXT_MAX - MARK_BYTES) // size)]
    # The server's count comes at the end, which was not waited for.
    usage = answer.usage
    usage = msgspec.structs.replace(usage, output_tokens=max(usage.output_tokens, spoken))
    return msgspec.structs.replace(
        answer, blocks=(TextBlock(text=text),), stop_reason="max_tokens", usage=usage
    )


def lacking(model: str, known: frozenset[str], more: frozenset[str]) -> frozenset[str]:
    """Return all that a model's server doesn't take; what is new of it is logged."""
    if new := more - known:
        log.warning("left out", action="cortex.lacks", model=model, parameters=sorted(new))
    return known | more


def received(blocks: Sequence[Block], usage: Usage, *, by: object) -> ModelAnswer:
    """Return an answer that isn't `ended` yet. Raises: ValueError: it can't be stored.

    Args:
        by: who answered, as the server names it.
    """
    msgspec.json.encode(blocks)
    name = mend(str(by or ""))[:MODEL_LENGTH_MAX]
    return ModelAnswer(blocks=tuple(blocks), stop_reason="unknown", usage=usage, model=name)


def string(value: object) -> str:
    """Raises: TypeError: it is something else."""
    if not isinstance(value, str):
        raise TypeError("text expected")
    return mend(value)


def usage_of(model: str, sent: object, said: object, read: object, written: object) -> Usage:
    """Return what a call took; if one of the first two is no count of tokens, none of it is known.

    Then all are 0, and what was reserved for the call stays spent: no answer is lost for a count.

    >>> usage_of("m", 7, 2, None, 1).tokens
    10
    >>> usage_of("m", 7, None, 3, 0).tokens, usage_of("m", -1, 5, 0, 0).tokens
    (0, 0)
    """
    if not (_is_count(sent) and _is_count(said)):
        return Usage(model=model, input_tokens=0, output_tokens=0)
    return Usage(
        model=model,
        input_tokens=count(sent),
        output_tokens=count(said),
        cache_read_tokens=count(read),
        cache_write_tokens=count(written),
    )


def count(value: object) -> int:
    """Return a count of tokens; what is none counts nothing.

    >>> count(7), count(None), count(-1), count("many")
    (7, 0, 0, 0)
    """
    return cast(int, value) if _is_count(value) else 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def arguments(value: object) -> dict[str, Any]:
    """Return a tool's arguments as they can be stored. Raises: TypeError, ValueError."""
    if not isinstance(value, dict):
        raise TypeError("tool arguments are not an object")
    return cast(dict[str, Any], plain(value))


def mend(text: str) -> str:
    """Join surrogate pairs that JSON escapes tore apart; replace halves without a partner.

    >>> mend("\\ud83d" + "\\ude00") == "\\U0001f600"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain(value: Any, depth: int = 0) -> Any:
    """Copy JSON data so that it can be stored: no NaN, no huge integers, no torn characters."""
    if depth > DEPTH_MAX:
        raise ValueError("nested too deeply")
    match value:
        case str():
            return mend(value)
        case dict():
            return {mend(str(k)): plain(v, depth + 1) for k, v in value.items()}
        case list():
            return [plain(v, depth + 1) for v in value]
        case float() if not math.isfinite(value):
            return None
        case int() if not -(2**63) <= value < 2**63:
            return str(value)
        case _:
            return value
