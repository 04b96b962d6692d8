"""The prompts of a conversation, from the templates in ``prompts/en`` (SPEC I-1).

The system prompt stays the same from call to call, so that a provider's cache can hold it and the
history after it. What changes with every call, the situation, is shown after both. Text that people
or models wrote goes in as data; it is never read as a template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from vigil.contracts import ExternalBlock, FollowUp, Row, State, Task, TaskBlock, TextBlock
from vigil.contracts.base import NEVER
from vigil.contracts.board import BoardBulletin
from vigil.contracts.board.bulletin import whole
from vigil.memory.questions import Hit
from vigil.texts.bars import barred
from vigil.zones.database import zone_named
from vigil.zones.wall import dated, local

from ..core.draft.profile import TemplateRow
from ..model import Situation
from .identity import Identity

if TYPE_CHECKING:
    import jinja2
else:
    from vigil.imports import LateModule

    jinja2 = LateModule("jinja2")  # needed by the first prompt, and not by a start

FOLDER: Final = Path(__file__).resolve().parents[3] / "prompts" / "en"
TEMPLATES_MAX: Final = 400
"""Compiled templates kept: compiling one takes as long as a turn."""
STABLE_MAX: Final = 1000
"""Stable parts kept rendered."""
LINE_MAX: Final = 300
MEMORY_LENGTH_MAX: Final = 1000
"""Characters of a memory that the situation shows; a tool shows it whole."""
TASK: Final = "[Task]"
"""Begins the first row of a session that was started."""


@cache
def _environment(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["line"] = line
    environment.filters["barred"] = barred
    environment.globals["MEMORY_LENGTH_MAX"] = MEMORY_LENGTH_MAX
    return environment


@lru_cache(maxsize=TEMPLATES_MAX)
def template_of(folder: Path, prompt: str) -> jinja2.Template:
    """Return a template of the folder, or of a profile's own text: compiled once in a process."""
    environment = _environment(folder)
    is_file = prompt.endswith(".j2")
    template = environment.get_template(prompt) if is_file else environment.from_string(prompt)
    template.globals = dict(template.globals)  # a chain of maps, which each rendering goes through
    return template


CLOSED: Final = "closed, since content from outside had a part in it"
"""In place of a text that others may have written: it would sway whoever reads it (FLOW F1)."""


class Prompts:
    """Renders prompts."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._stable: dict[tuple[Identity, str], tuple[str, str]] = {}

    def _render(self, template: str, **variables: Any) -> str:
        return self._of(f"{template}.md.j2").render(**variables)

    def _of(self, prompt: str) -> jinja2.Template:
        return template_of(self._folder, prompt)

    def system(
        self, identity: Identity, prompt: str = "channel.md.j2", *, is_conversation: bool = True
    ) -> tuple[str, str]:
        """Render the system prompt, what most sessions share first: (the kind's, who it is for).

        Args:
            prompt: what a session of this kind is for (`Profile.prompt`).
        """
        stable = self._stable.get((identity, prompt))
        if stable is None:
            if len(self._stable) >= STABLE_MAX:
                self._stable.clear()
            stable = (
                self.question(prompt, is_conversation=is_conversation),
                self._render("identity", identity=identity).strip(),
            )
            self._stable[identity, prompt] = stable
        return stable

    def bulletin(self, bulletin: BoardBulletin, *, is_short: bool) -> str:
        """Render the bulletin: the last of the system prompt, since it alone changes at times."""
        return self._render(
            "bulletin",
            text=bulletin.short if is_short else whole(bulletin),
            made_at=dated(bulletin.made_at, UTC),
        ).strip()

    def question(self, prompt: str, **values: Any) -> str:
        """Render what a model is told to do, whoever it does it for."""
        values = {"is_conversation": False} | values
        return self._render("system", prompt=self._of(prompt), **values).strip()

    def situation(self, situation: Situation, before: StandingText | None = None) -> str:
        """Render what is so now, as a session of the person's is told it.

        Args:
            before: what the session was told last, of which most stays.
        """
        standing = StandingText() if before is None else before
        rest = standing.of(situation, lambda: self._render("situation", **_variables(situation)))
        return f"{self._render('clock', **_clock_variables(situation))}{rest}".strip()

    def clock(self, situation: Situation, *, knows_person: bool = True) -> str:
        """Render the time alone; in the person's zone, too, if they are known."""
        values = _clock_variables(situation) | {"knows_person": knows_person}
        return self._render("clock", **values).strip()

    def rendered(self, row: TemplateRow) -> Row:
        """Render a row that a template makes."""
        text = TextBlock(text=self._of(row.template).render(**row.values).strip())
        return Row(role="user", source="system", blocks=(text,), at=row.at)

    def summary_row(self, summary: str) -> str:
        """Render the row that stands for the earlier part of the conversation."""
        return self._render("summary", summary=summary).strip()

    def timer_row(self, follow_up: FollowUp, timer_id: str, now: datetime) -> str:
        """Render the row that tells the model that a follow-up is due.

        Args:
            now: aware UTC.
        """
        return self._render(
            "timer_fired",
            timer_id=timer_id,
            follow_up=follow_up,
            fire_at=dated(follow_up.fire_at, UTC),
            late=_late(follow_up, now),
        ).strip()

    def external_row(self, block: ExternalBlock, at: datetime) -> str:
        """Render the row that tells the model of an event from outside.

        Args:
            at: when it was taken up; aware UTC.
        """
        occurred_at = block.event.occurred_at
        return self._render(
            "external_event",
            event=block.event,
            left_out=block.left_out,
            at=dated(at, UTC),
            occurred_at="" if occurred_at is None else dated(occurred_at, UTC),
        ).strip()

    def result_row(self, block: TaskBlock) -> str:
        """Render the row that tells the model what became of something it started."""
        return self._render("task_result", block=block).strip()

    def task_row(self, task: str) -> str:
        """Render the row that a session which was started begins with."""
        return f"{TASK}\n\n{task.strip()}"


class StandingText:
    """What one session's model was told of its situation last, without what each call changes."""

    def __init__(self) -> None:
        self._situation: Situation | None = None
        self._text = ""

    def of(self, situation: Situation, render: Callable[[], str]) -> str:
        """Return it of that situation, rendered anew if that is another one."""
        standing = replace(situation, now=NEVER, steps_left=0)
        if standing != self._situation:
            self._situation, self._text = standing, render()
        return self._text


def under_way(tasks: Iterable[Task]) -> tuple[str, ...]:
    """Name what a session has under way and doesn't wait for."""
    return tuple(
        f"{one.tool}: {CLOSED if one.is_tainted else one.title}"
        for one in tasks
        if not (one.is_awaited or one.told_seq)
    )


def steps_left(state: State, calls_max: int) -> int:
    """Return how many calls of its model a session has left that was lent some; 0: it has its own.

    Args:
        calls_max: that it may make in all.
    """
    is_lent = state.start is not None and state.start.steps > 0
    return calls_max - state.loop.calls if is_lent and state.loop is not None else 0


def _clock_variables(situation: Situation) -> dict[str, Any]:
    return {
        "now_utc": dated(situation.now, UTC),
        "now_local": dated(situation.now, zone_named(situation.timezone)),
        "timezone": situation.timezone,
        "user": situation.user,
        "knows_person": True,
        "steps_left": situation.steps_left,
    }


def _variables(situation: Situation) -> dict[str, Any]:
    zone = zone_named(situation.timezone)
    items = sorted(situation.follow_ups.items(), key=lambda item: (item[1].fire_at, item[0]))
    return {
        "language": situation.language,
        "autonomy_enabled": situation.autonomy_enabled,
        "channels": situation.channels,
        "route": situation.route,
        "is_conversation": situation.is_conversation,
        "members": situation.members,
        "others": situation.others,
        "under_way": situation.under_way,
        "follow_ups": [
            {
                "id": timer_id,
                "due_utc": dated(follow_up.fire_at, UTC),
                "due_local": dated(follow_up.fire_at, zone),
                "reason": CLOSED if follow_up.is_tainted else follow_up.reason,
                "message": None if follow_up.is_tainted else follow_up.message,
                "keep": follow_up.keep,
                "is_held": follow_up.held_from is not None,
            }
            for timer_id, follow_up in items
        ],
        "memories": [_remembered(hit, zone) for hit in situation.memories],
        "letters": situation.letters,
        "facts": situation.facts,
        "likes": situation.likes,
    }


def _remembered(hit: Hit, zone: ZoneInfo) -> dict[str, Any]:
    memory = hit.memory
    return {
        "date": day(memory.occurred_at or memory.created_at, zone),
        "type": memory.type,
        "source": memory.source,
        "content": hit.text or memory.content,
        "times": hit.times,
        "since": "" if memory.valid_from is None else day(memory.valid_from, zone),
        "until": "" if memory.valid_to is None else day(memory.valid_to, zone),
    }


def day(at: datetime, zone: Any) -> str:
    """Write the day of an instant in a zone.

    >>> day(datetime(2026, 11, 20, 23, 34, 5, tzinfo=UTC), zone_named("Asia/Tokyo"))
    '2026-11-21'
    """
    return local(at, zone).date().isoformat()


def _late(follow_up: FollowUp, now: datetime) -> str:
    """Return how late it is, if that is a minute or more; a pause or an outage may do that."""
    late = now - (follow_up.held_from or follow_up.fire_at)
    if late < timedelta(minutes=1):
        return ""
    minutes = int(late.total_seconds() // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def line(text: str | None, limit: int = LINE_MAX) -> str:
    """Put text that somebody else wrote on one line, so that it can't pose as a section.

    >>> line("a\\n# b")
    'a # b'
    """
    joined = " ".join((text or "").split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"
