"""The history of an open session, as read back from its turns and grown by its commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from vigil.contracts import Row, TextBlock, Turn
from vigil.contracts.events import LetterName
from vigil.contracts.history import LetterHead

from .core.context.compaction import CompactionPlan, Excerpt, decide, make_room, summary_tokens
from .core.context.history import (
    FILL_MAX,
    chunk_of,
    length,
    measure,
    newest,
    swayed,
    swayed_turn,
    trim,
    without,
)
from .core.context.letters import (
    ALL,
    ClosedLetter,
    Opening,
    closed,
    find,
    heads,
    listed,
    of_turn,
    view,
)
from .core.context.window import Measured, Window, tokens_of_rows
from .core.draft.chunk import Chunk


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """The part of another session's history that a branch or a fork begins with."""

    chunks: tuple[Chunk, ...] = ()
    whole: tuple[Chunk, ...] = ()
    """The same as it was, where letters are closed in `chunks`."""
    summary: Row | None = None
    is_summary_tainted: bool = False
    vouched: tuple[LetterName, ...] = ()
    """Letters that the person had vouched for by then."""

    @property
    def summary_text(self) -> str:
        blocks = () if self.summary is None else self.summary.blocks
        return "".join(block.text for block in blocks if isinstance(block, TextBlock))

    @property
    def summary_tokens(self) -> int:
        return summary_tokens(self.summary_text)

    @property
    def tokens(self) -> int:
        return sum(chunk.tokens for chunk in self.chunks) + self.summary_tokens

    @property
    def is_tainted(self) -> bool:
        return self.is_summary_tainted or swayed(self.chunks)

    @property
    def closed(self) -> Inherited:
        """The same with each letter closed that the person hadn't vouched for."""
        summary = self.summary
        if summary is not None and self.is_summary_tainted:
            summary = closed_summary(summary)
        shown = closed(self.chunks, self.vouched)
        return Inherited(chunks=shown, whole=self.chunks, summary=summary)


def closed_summary(summary: Row) -> Row:
    """Return the row that stands for a summary which outside content had a part in."""
    return msgspec.structs.replace(summary, blocks=(TextBlock(text=CLOSED),))


NOTHING: Final = Inherited()
CLOSED: Final = (
    "(What was said before was summed up by a model that had read content from outside. It isn't "
    "shown; memory has what was kept of it.)"
)


class History:
    """Rows by the turn that holds them, and the summary of what was before them.

    Forgets what the model won't see again. Read back from the log it is the same as it was grown.
    What is shown begins at the same row from call to call: once there are more than `limit` rows,
    all but the newest half go at once. Of a window that slides no provider's cache would hold any.
    """

    def __init__(self, limit: int, context_tokens: int) -> None:
        self._limit = limit
        self._kept = limit // 2
        self._context_tokens = context_tokens
        self._chunks: list[Chunk] = []
        self._tokens = 0
        self._rows = 0
        self._is_swayed = False
        """Whether anything of the chunks is (`swayed`)."""
        self._forked: tuple[Chunk, ...] = ()
        """What a fork began with, as it was."""
        self._opening = ALL
        self._shown: list[Chunk] | None = None
        """The chunks as the open loop is shown them; None: to be made anew."""
        self._measured: Measured | None = None
        self.summary = ""
        self._summary: Row | None = None
        self._is_summary_tainted = False
        self.inherited: Inherited | None = None
        """What another session knew when it started this one. It's shown before all that this one
        has, for as long as it fits, and never compacted: that is its own session's."""
        self.task: Row | None = None
        """What the session was started for. It has one exchange, whose beginning may be too long
        ago to be shown; this is shown all the same."""

    # ------------------------------------------------------------ growing

    def show_to(self, opening: Opening) -> None:
        """Show the history to a loop: each letter that it didn't open is closed."""
        if opening != self._opening:
            self._opening, self._shown = opening, None

    def letter(self, handle: str) -> ClosedLetter | None:
        """Return a letter, if the history still has it: of the session's own first, then of what
        it began with."""
        began_with = self._inheritance.whole or self._forked
        return find(self._chunks, handle) or find(began_with, handle)

    def letters_of(self, turn_seq: int) -> tuple[ClosedLetter, ...] | None:
        """Return the letters of one turn that the open loop isn't shown where they are; None: the
        history has the turn no more."""
        turn = next((chunk for chunk in self._chunks if chunk.seq == turn_seq), None)
        if turn is None:
            return None
        return () if turn.ordinal >= self._opening.turn else of_turn(self._chunks, turn_seq)

    def heads(self, turn: Turn) -> tuple[LetterHead, ...]:
        """Return what people are told of the letters of a turn that is to be added."""
        if not turn.rows or not swayed_turn(turn):
            return ()
        return heads([*self._chunks, chunk_of(0, turn)])

    def go_on_from(self, known: Inherited, turn_seq: int | None) -> None:
        """Begin with what another conversation knew, as if one turn of this one held all of it.

        So it's compacted, cut and forgotten as this one's own history is.

        Args:
            turn_seq: stream sequence of the turn that made this one a fork; None: its rows are no
                part of the history any more, and of what was known the summary alone is.
        """
        shown = known.closed
        if shown.summary is not None:
            self._summary, self.summary = shown.summary, shown.summary_text
        if turn_seq is None or not known.chunks:
            return
        self._forked = known.chunks
        rows = tuple(row for chunk in shown.chunks for row in chunk.rows)
        whole = Chunk(seq=turn_seq, rows=rows, tokens=tokens_of_rows(rows))
        self._keep([whole, *self._chunks])

    def forget(self) -> None:
        """Begin anew: some of it was taken back, and the rest is read again."""
        self.summary, self._summary, self._is_summary_tainted = "", None, False
        self._forked, self._measured = (), None
        self._keep([])

    def summarise(self, turn: Turn) -> None:
        """Take the summary of a turn; what is before its `history_from` is forgotten."""
        self.summary = turn.summary
        text = TextBlock(text=turn.summary)
        self._summary = Row(role="user", source="system", blocks=(text,), at=turn.created_at)
        self._is_summary_tainted = turn.is_summary_tainted
        self._measured = None
        self._keep([chunk for chunk in self._chunks if chunk.seq >= turn.state.history_from])

    def add(self, turn_seq: int, turn: Turn) -> None:
        """Append the rows of the turn with stream sequence `turn_seq`, and its summary."""
        if turn.summary:
            self.summarise(turn)
        self.take_out(turn.unsaid)
        if turn.rows:
            chunk = chunk_of(turn_seq, turn)
            self._chunks.append(chunk)
            self._shown = None
            self._tokens += chunk.tokens
            self._rows += len(chunk.rows)
            self._is_swayed = self._is_swayed or swayed([chunk])
            if self._rows > self._limit and length(self._chunks) > self._limit:
                self._keep(newest(self._chunks, self._kept))
        self._measured = measure(turn, self._row_tokens) or self._measured

    def take_out(self, unsaid: Collection[str]) -> None:
        """Take out what was decided and not said; the same twice changes nothing."""
        if unsaid:
            self._keep(without(self._chunks, unsaid))

    def _keep(self, chunks: Iterable[Chunk]) -> None:
        self._chunks, self._shown = list(chunks), None
        self._tokens = sum(chunk.tokens for chunk in self._chunks)
        self._rows = sum(len(chunk.rows) for chunk in self._chunks)
        self._is_swayed = swayed(self._chunks)

    # ------------------------------------------------------------ what the model sees

    @property
    def _row_tokens(self) -> int:
        own = sum(chunk.tokens for chunk in self._seen) if self._is_closed else self._tokens
        inherited = 0 if self.inherited is None else self.inherited.tokens
        return own + summary_tokens(self.summary) + inherited

    @property
    def _is_closed(self) -> bool:
        """Whether any letter of it is shown closed."""
        return self._is_swayed and self._opening.turn > 0

    @property
    def _seen(self) -> list[Chunk]:
        """The chunks as the open loop is shown them."""
        if not self._is_closed:
            return self._chunks
        if self._shown is None:
            self._shown = view(self._chunks, self._opening)
        return self._shown

    @property
    def _inheritance(self) -> Inherited:
        return NOTHING if self.inherited is None else self.inherited

    def window(self, fixed_tokens: int) -> Window:
        """Return the context window, by what is known of the size of requests.

        Args:
            fixed_tokens: the estimate for the system prompt and the tools.
        """
        ratio = 1.0 if self._measured is None else self._measured.ratio(fixed_tokens)
        return Window(context_tokens=self._context_tokens, fixed_tokens=fixed_tokens, ratio=ratio)

    def rows(self, more: list[Row], window: Window) -> tuple[Row, ...]:
        """Return what the model sees: the summary, and the rows with `more` at their end."""
        inherited = self._inheritance
        known = [row for chunk in (*inherited.chunks, *self._seen) for row in chunk.rows]
        task = [] if self.task is None else [self.task]
        taken = summary_tokens(self.summary)
        taken += 0 if self.inherited is None else inherited.summary_tokens
        room = window.room(FILL_MAX) - taken - tokens_of_rows(task)
        is_fitting = self._row_tokens - taken + tokens_of_rows(more) <= room
        shown = trim([*known, *more], None if is_fitting else room)
        if task and not any(
            row.source == "task" and isinstance(row.blocks[0], TextBlock) for row in shown
        ):
            shown = [*task, *shown]
        summaries = [row for row in (inherited.summary, self._readable) if row is not None]
        return (*summaries, *shown)

    @property
    def _readable(self) -> Row | None:
        """The summary; one of an older version, which outside content had a part in, is closed."""
        if self._summary is None or not self._is_summary_closed:
            return self._summary
        return closed_summary(self._summary)

    @property
    def _shown_summary(self) -> str:
        return CLOSED if self._is_summary_closed else self.summary

    @property
    def _is_summary_closed(self) -> bool:
        return self._is_summary_tainted and self._opening.turn > 0

    @property
    def is_tainted(self) -> bool:
        """Whether untrusted content stands in the history, open or closed (SPEC X-3)."""
        is_inheritance_tainted = self.inherited is not None and self.inherited.is_tainted
        return self._is_summary_tainted or is_inheritance_tainted or self._is_swayed

    @property
    def newest(self) -> tuple[Row, ...]:
        """The rows that are held, as they are."""
        return tuple(row for chunk in self._chunks for row in chunk.rows)

    def first_turn(self, default: int) -> int:
        """Return from which turn on the history must be read back."""
        return self._chunks[0].seq if self._chunks else default

    # ------------------------------------------------------------ compacting

    def plan(self, more: list[Row], window: Window) -> CompactionPlan | None:
        """Decide what must go before the model is asked; `more` are rows not committed yet."""
        return decide(tuple(self._seen), more, self.summary, window)

    def make_room(self, more: list[Row], window: Window, *, may_ask: bool) -> CompactionPlan | None:
        """Decide what goes since a request with these rows was refused as too long."""
        return make_room(tuple(self._chunks), more, self.summary, window, may_ask=may_ask)

    def begins_with(self, cut: Excerpt) -> bool:
        """Whether the cut part is still the oldest of the history, and something follows it."""
        chunks, count = tuple(self._chunks), len(cut.whole)
        is_same = chunks[:count] == cut.whole and self._shown_summary == cut.summary
        return is_same and count < len(chunks) and chunks[count].seq == cut.keep_from

    def cut(self, plan: CompactionPlan, *, lists_letters: bool = True) -> Excerpt:
        """Return the part that the plan cuts, which was made for the history as it is.

        Args:
            lists_letters: whether the summary is to list the letters in it.
        """
        chunks = tuple(self._chunks)
        whole = chunks[: plan.count]
        return Excerpt(
            chunks=closed(whole, self._opening.vouched) if self._opening.turn else whole,
            whole=whole,
            letters=listed(whole) if lists_letters else (),
            keep_from=chunks[plan.count].seq,
            summary=self._shown_summary,
            is_summary_tainted=self._is_summary_tainted and not self._is_summary_closed,
            is_history_whole=length(chunks) < self._kept,
        )
