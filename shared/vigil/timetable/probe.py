"""What the scheduler asks the executor before it has a watcher run: has it changed? (LOOPS L-3)

Asked and answered without a model, and nothing is kept where it's answered: a repeat may ask again.
What was seen is stored with the decision that it led to, by compare-and-set, so a change that two
ask about has one run.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..contracts import SlotRun
from ..contracts.board import FactFill, LastSeen, Watched
from ..errors import InvalidInput
from ..watching.watched import what_of

EXECUTOR_PROBE: Final = "rpc.executor.probe"
"""Where it is asked; one replica of the executor answers."""
CONCURRENCY_MAX: Final = 32
"""Probes at a time, of one replica."""
PROBE_TIMEOUT_S: Final = 45.0
"""What takes longer has failed."""
TIMEOUT_S: Final = 60.0
"""Longer than any probe takes."""
TEXT_LENGTH_MAX: Final = 8_000
"""Characters that are kept of what was seen: differences behind them are known, but not shown."""
CHANGE_LENGTH_MAX: Final = 6_000
"""Characters of a difference."""
FAILURES_TOLD: Final = 3
"""After so many failures, one after the other, the person is told; and when it works again."""


class ProbeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be looked at, and what was seen there before."""

    session: str
    """Session key of the run that it may lead to."""
    slot: SlotRun
    """Of that run."""
    watch: Watched
    seen: LastSeen | None
    after: int
    """Place of the row's newest ledger entry: what is told is told once after it."""
    looked: dict[str, str] = {}
    """Facts that the look tells, by name, and where it finds them; their shapes are the slot's."""


class ProbeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen."""

    seen: LastSeen
    """To be kept, unless there is a problem."""
    change: str = ""
    """The difference to what was seen before; empty: none, or nothing was seen before."""
    problem: str = ""
    """Why nothing was seen."""
    is_trusted: bool = False
    """Whether what was seen counts as trusted, by the configuration."""
    facts: FactFill | None = None
    """What came of the facts that it told; None: it was to tell none."""


encode: Final = msgspec.json.Encoder().encode
_question: Final = msgspec.json.Decoder(ProbeQuestion).decode
_answer: Final = msgspec.json.Decoder(ProbeAnswer).decode


def decode_question(data: bytes) -> ProbeQuestion:
    """Raises: InvalidInput."""
    try:
        return _question(data)
    except msgspec.MsgspecError as error:
        raise InvalidInput("probe", str(error)) from error


def decode_answer(data: bytes) -> ProbeAnswer:
    """Raises: InvalidInput."""
    try:
        return _answer(data)
    except msgspec.MsgspecError as error:
        raise InvalidInput("probe", str(error)) from error


def is_of(seen: LastSeen | None, watch: Watched) -> bool:
    """Whether what was seen is of what is watched now, and it saw something."""
    return seen is not None and seen.what == what_of(watch) and bool(seen.digest)
