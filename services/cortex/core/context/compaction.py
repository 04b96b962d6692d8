"""The compactor: what becomes of the oldest part of a conversation that fills the context window.

A rule, no decision of a model (SPEC I-4): at 80 % of the window the oldest 30 % are summed up, at
85 % the oldest 50 %, at 95 % they are dropped without a model call. Two rows are always kept. Only
whole exchanges are cut, never the open one. "The oldest 30 %" is so much of the rows and so much of
their size: of equal rows the same, and of unequal ones so that it helps.

What is cut is offered to memory first, in the same turn. A summary takes the place of the earlier
one, which is part of what is summed up. It is always shorter than what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from vigil.contracts import Row, TextBlock
from vigil.contracts.made import SeenCut

from ...model import ModelAnswer
from ..draft import Draft
from ..draft.chunk import Chunk, Offer, begins
from ..draft.tokens import tokens_of_text
from .history import swayed
from .offers import cut, observe, save_all, things, was_offered
from .window import Window, tokens_of_rows

ROWS_MIN: Final = 2
"""Always kept."""
SUMMARISE_AT: Final = ((0.85, 0.5), (0.80, 0.3))
"""From which fill on which share of the oldest is summed up; the first that applies."""
DROP_AT: Final = 0.95
DROP_SHARE: Final = 0.5
"""At least so much is dropped, and on until the fill is below the lowest threshold."""
READ_MAX: Final = 0.7
"""The share of the window that may be given to a model to be summed up."""
SUMMARY_BYTES_MAX: Final = 8 * 1024
SUMMARY_SHARE_MAX: Final = 0.1
"""The share of the window that a summary may take, where 8 kB may be much."""
WORDS_AROUND: Final = 100
"""Tokens of the words that a summary is shown with."""
LEFT_OUT: Final = "(Messages after this were left out without being summed up.)"
LETTERS_MAX: Final = 20
"""Letters that a summary names: the newest."""
LETTERS_SHARE: Final = 0.25
"""The share of the longest summary that the list of its letters may take."""
_LISTED: Final = "\n\nLetters of that part, closed; open_letter shows one:\n"
CUT_OFF: Final = "(The rest of this summary was too long.)"

_TAGGED: Final = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done before the model may be asked."""

    kind: Literal["summarise", "drop"]
    count: int
    """How many of the oldest turns with rows are cut."""
    fill: float
    """The part of the window that the request would have taken; 1: all of it."""


def seen(plan: CompactionPlan, window: Window) -> SeenCut:
    """Return the plan as a turn records it."""
    return SeenCut(
        lists_letters=True,
        kind=plan.kind,
        count=plan.count,
        fill=plan.fill,
        context_tokens=window.context_tokens,
        fixed_tokens=window.fixed_tokens,
        ratio=window.ratio,
    )


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the history that a plan cuts, with what stood before it."""

    chunks: tuple[Chunk, ...]
    """The turns as they are summed up, and offered to memory: letters are closed."""
    whole: tuple[Chunk, ...]
    """The same turns with their letters as they stand."""
    keep_from: int
    """Sequence of the oldest turn that stays."""
    summary: str = ""
    """The earlier summary; empty: there is none."""
    is_summary_tainted: bool = False
    letters: tuple[str, ...] = ()
    """A line for each letter in it (`letters.listed`), the oldest first."""
    is_history_whole: bool = True
    """Whether no rows since the earlier summary were left out before, for their number."""

    @property
    def rows(self) -> int:
        return sum(len(chunk.rows) for chunk in self.chunks)

    @property
    def offer(self) -> Offer:
        return Offer(chunks=self.chunks, is_tainted=self.is_summary_tainted or swayed(self.chunks))


def decide(
    chunks: Sequence[Chunk], more: Sequence[Row], summary: str, window: Window
) -> CompactionPlan | None:
    """Decide what must go before the model is asked about the open exchange.

    Args:
        chunks: the history, oldest first.
        more: rows of the turn in the making.
        summary: what stands for all that was before.
    """
    tokens = sum([chunk.tokens for chunk in chunks]) + tokens_of_rows(more)
    fill = window.fill(tokens + summary_tokens(summary))
    if fill < SUMMARISE_AT[-1][0]:
        return None
    load = _Load(chunks, more, summary)
    if fill >= DROP_AT:
        count = _drop(load, window)
        return None if count is None else CompactionPlan(kind="drop", count=count, fill=fill)
    for at, share in SUMMARISE_AT:
        if fill >= at:
            count = _oldest(load, share)
            is_worth = count is not None and load.tokens_of(count) > summary_tokens_max(window)
            return (
                CompactionPlan(kind="summarise", count=count, fill=fill)
                if count and is_worth
                else None
            )
    return None


def make_room(
    chunks: Sequence[Chunk], more: Sequence[Row], summary: str, window: Window, *, may_ask: bool
) -> CompactionPlan | None:
    """Decide what goes since a server refused the request as too long: the oldest half is summed
    up, or dropped if it's too long for that, too. None: nothing may go.

    Args:
        may_ask: whether the model may be asked for a summary.
    """
    load = _Load(chunks, more, summary)
    fill = window.fill(load.total)
    count = _oldest(load, DROP_SHARE)
    if may_ask and count is not None:
        tokens = load.tokens_of(count)
        is_readable = window.fill(tokens + summary_tokens(summary)) <= READ_MAX
        if is_readable and tokens > summary_tokens_max(window):
            return CompactionPlan(kind="summarise", count=count, fill=fill)
    count = _drop(load, window)
    return None if count is None else CompactionPlan(kind="drop", count=count, fill=fill)


class _Load:
    """The rows of a request in the making, by the turns that they may be cut after."""

    def __init__(self, chunks: Sequence[Chunk], more: Sequence[Row], summary: str) -> None:
        self._chunks = chunks
        self._more = more
        self._sums = [(0, 0)]
        for chunk in chunks:
            rows, tokens = self._sums[-1]
            self._sums.append((rows + len(chunk.rows), tokens + chunk.tokens))
        rows, tokens = self._sums[-1]
        self.rows = rows + len(more)
        self.row_tokens = tokens + tokens_of_rows(more)
        self.total = self.row_tokens + summary_tokens(summary)

    def rows_of(self, count: int) -> int:
        return self._sums[count][0]

    def tokens_of(self, count: int) -> int:
        return self._sums[count][1]

    def cuts(self) -> list[int]:
        """Return how many turns may be cut, ascending: up to where the open exchange begins."""
        places = [i for i, chunk in enumerate(self._chunks) if chunk.is_beginning]
        if begins(self._more):
            places.append(len(self._chunks))
        return [i for i in places if i and self.rows - self.rows_of(i) >= ROWS_MIN]


def _oldest(load: _Load, share: float) -> int | None:
    """Return how many turns hold the oldest `share`; all that may be cut, if they don't."""
    cuts = load.cuts()
    for count in cuts:
        has_rows = load.rows_of(count) >= share * load.rows
        if has_rows and load.tokens_of(count) >= share * load.row_tokens:
            return count
    return cuts[-1] if cuts else None


def _drop(load: _Load, window: Window) -> int | None:
    count = _oldest(load, DROP_SHARE)
    if count is None:
        return None
    lowest = SUMMARISE_AT[-1][0]
    for further in load.cuts():
        if further >= count:
            count = further
            if window.fill(load.total - load.tokens_of(count)) < lowest:
                break
    return count if load.tokens_of(count) > summary_tokens(LEFT_OUT) else None


def summary_tokens(summary: str) -> int:
    """Return the estimate for a summary as the model is shown it."""
    return tokens_of_text(summary) + WORDS_AROUND if summary else 0


def summary_bytes_max(window: Window) -> int:
    return min(SUMMARY_BYTES_MAX, int(window.context_tokens * SUMMARY_SHARE_MAX) * 3)


def summary_tokens_max(window: Window) -> int:
    """Return the estimate for the longest summary: what is cut for one must be longer."""
    return -(-summary_bytes_max(window) // 3) + WORDS_AROUND


# ---------------------------------------------------------------- what becomes of it


def summarise(draft: Draft, cut_: Excerpt, answer: ModelAnswer, window: Window) -> bool:
    """Put the model's summary in the place of what is cut. False: there is none in its answer."""
    draft.usage.append(answer.usage)
    letters = _letters(cut_, window)
    summary = bounded(words_of(_summary_in(answer)), _room(window, letters))
    if not summary or answer.stop_reason == "refusal":
        fail(draft, "its answer holds no summary")
        return False
    offer = cut_.offer
    saved = save_all(draft, answer, offer)
    draft.note("compacted", f"{cut_.rows} rows were summed up; {things(saved)} handed on")
    _replace(draft, cut_, summary + letters)
    if draft.state.unsaved_from and (
        cut_.is_history_whole or draft.state.unsaved_from >= cut_.chunks[0].seq
    ):
        draft.update(unsaved_from=max(draft.state.unsaved_from, cut_.keep_from))
    return True


def drop(draft: Draft, cut_: Excerpt, window: Window) -> None:
    """Drop what is cut; the person's own words in it are offered to memory as they are.

    What a pause would have offered to memory, it still offers: those turns are on the log.
    """
    kept = observe(draft, [c for c in cut_.chunks if not was_offered(draft, c)])
    draft.note("compacted_unread", f"{cut_.rows} rows were left out; {things(kept)} handed on")
    letters = _letters(cut_, window)
    left = _room(window, letters) - len(LEFT_OUT.encode()) - 2
    earlier = bounded(words_of(cut_.summary).removesuffix(LEFT_OUT).strip(), left)
    _replace(draft, cut_, (f"{earlier}\n\n{LEFT_OUT}" if earlier else LEFT_OUT) + letters)


def _letters(cut_: Excerpt, window: Window) -> str:
    return list_of(cut_.summary, cut_.letters, int(summary_bytes_max(window) * LETTERS_SHARE))


def _room(window: Window, letters: str) -> int:
    """Return how many bytes the words of a summary may have."""
    return summary_bytes_max(window) - len(letters.encode())


def fail(draft: Draft, reason: str) -> None:
    """Go on without compacting; it is tried again at a later call."""
    draft.note("compaction_failed", reason)
    draft.outcome = "begun"
    draft.is_dirty = True


def words_of(summary: str) -> str:
    """Return what a summary says, without its list of letters."""
    return summary.partition(_LISTED)[0].strip()


def list_of(earlier: str, letters: Sequence[str], bytes_max: int) -> str:
    """Return what a summary ends with, so that letters in what it stands for can still be opened:
    the newest, those of the earlier summary too, so many that they fit.

    >>> first = "Ann likes tea." + list_of("", ["a1: a result"], 500)
    >>> print("She does." + list_of(first, ["b7: what you answered"], 500))
    She does.
    <BLANKLINE>
    Letters of that part, closed; open_letter shows one:
    - a1: a result
    - b7: what you answered
    >>> list_of("", [], 500)
    ''
    """
    known = [*earlier.partition(_LISTED)[2].splitlines(), *(f"- {line}" for line in letters)]
    known = known[-LETTERS_MAX:]
    while known:
        listed = _LISTED + "\n".join(known)
        if len(listed.encode()) <= bytes_max:
            return listed
        known = known[1:]
    return ""


def _replace(draft: Draft, cut_: Excerpt, summary: str) -> None:
    draft.summary = summary
    draft.is_summary_tainted = cut_.is_summary_tainted or swayed(cut_.chunks)
    draft.history_from = cut_.keep_from
    draft.update(summary_seq=0)
    draft.outcome = "compacted"


def _summary_in(answer: ModelAnswer) -> str:
    text = "".join(b.text for b in answer.blocks if isinstance(b, TextBlock))
    tagged = _TAGGED.search(text)
    return (text if tagged is None else tagged[1]).strip()


def bounded(summary: str, bytes_max: int) -> str:
    """Cut a summary that is too long, and say so.

    >>> bounded("short", 100)
    'short'
    """
    if len(summary.encode("utf-8", "replace")) <= bytes_max:
        return summary
    return f"{cut(summary, max(bytes_max - len(CUT_OFF) - 1, 0))} {CUT_OFF}"
