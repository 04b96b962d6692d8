"""The history of an open session, as read back from its turns and grown by its commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from vigil.contracts import Row, TextBlock, Turn

from ..core.context.compaction import CompactionPlan, Excerpt, decide, make_room, summary_tokens
from ..core.context.history import (
    FILL_MAX,
    Chunk,
    chunk_of,
    length,
    measure,
    newest,
    swayed,
    trim,
    without,
)
from ..core.context.window import Measured, Window, tokens_of_rows


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """The part of another session's history that a branch or a fork begins with."""

    chunks: tuple[Chunk, ...] = ()
    summary: Row | None = None
    is_summary_tainted: bool = False

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


NOTHING: Final = Inherited()


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

    def go_on_from(self, known: Inherited, turn_seq: int | None) -> None:
        """Begin with what another conversation knew, as if one turn of this one held all of it.

        So it's compacted, cut and forgotten as this one's own history is.

        Args:
            turn_seq: stream sequence of the turn that made this one a fork; None: its rows are no
                part of the history any more, and of what was known the summary alone is.
        """
        if known.summary is not None:
            self._summary, self._is_summary_tainted = known.summary, known.is_summary_tainted
            self.summary = known.summary_text
        if turn_seq is None or not known.chunks:
            return
        whole = Chunk(
            seq=turn_seq,
            rows=tuple(row for chunk in known.chunks for row in chunk.rows),
            tokens=sum(chunk.tokens for chunk in known.chunks),
            is_tainted=any(chunk.is_tainted for chunk in known.chunks),
            is_swayed=any(chunk.is_swayed for chunk in known.chunks),
        )
        self._keep([whole, *self._chunks])

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
        self._chunks = list(chunks)
        self._tokens = sum(chunk.tokens for chunk in self._chunks)
        self._rows = sum(len(chunk.rows) for chunk in self._chunks)
        self._is_swayed = swayed(self._chunks)

    # ------------------------------------------------------------ what the model sees

    @property
    def _row_tokens(self) -> int:
        inherited = NOTHING if self.inherited is None else self.inherited
        return self._tokens + summary_tokens(self.summary) + inherited.tokens

    def window(self, fixed_tokens: int) -> Window:
        """Return the context window, by what is known of the size of requests.

        Args:
            fixed_tokens: the estimate for the system prompt and the tools.
        """
        ratio = 1.0 if self._measured is None else self._measured.ratio(fixed_tokens)
        return Window(context_tokens=self._context_tokens, fixed_tokens=fixed_tokens, ratio=ratio)

    def rows(self, more: list[Row], window: Window) -> tuple[Row, ...]:
        """Return what the model sees: the summary, and the rows with `more` at their end."""
        inherited = NOTHING if self.inherited is None else self.inherited
        known = [row for chunk in (*inherited.chunks, *self._chunks) for row in chunk.rows]
        task = [] if self.task is None else [self.task]
        taken = summary_tokens(self.summary) + inherited.summary_tokens
        room = window.room(FILL_MAX) - taken - tokens_of_rows(task)
        is_fitting = self._row_tokens - taken + tokens_of_rows(more) <= room
        shown = trim([*known, *more], None if is_fitting else room)
        if task and not any(
            row.source == "task" and isinstance(row.blocks[0], TextBlock) for row in shown
        ):
            shown = [*task, *shown]
        summaries = [row for row in (inherited.summary, self._summary) if row is not None]
        return (*summaries, *shown)

    @property
    def is_tainted(self) -> bool:
        """Whether untrusted content stands in what the model is shown (SPEC X-3)."""
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
        return decide(tuple(self._chunks), more, self.summary, window)

    def make_room(self, more: list[Row], window: Window, *, may_ask: bool) -> CompactionPlan | None:
        """Decide what goes since a request with these rows was refused as too long."""
        return make_room(tuple(self._chunks), more, self.summary, window, may_ask=may_ask)

    def begins_with(self, cut: Excerpt) -> bool:
        """Whether the cut part is still the oldest of the history, and something follows it."""
        chunks, count = tuple(self._chunks), len(cut.chunks)
        is_same = chunks[:count] == cut.chunks and self.summary == cut.summary
        return is_same and count < len(chunks) and chunks[count].seq == cut.keep_from

    def cut(self, plan: CompactionPlan) -> Excerpt:
        """Return the part that the plan cuts, which was made for the history as it is."""
        chunks = tuple(self._chunks)
        return Excerpt(
            chunks=chunks[: plan.count],
            keep_from=chunks[plan.count].seq,
            summary=self.summary,
            is_summary_tainted=self._is_summary_tainted,
            is_history_whole=length(chunks) < self._kept,
        )
