"""Goals: what an agent pursues for a person (SPEC G-2, LOOPS L-15). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from ...contracts import Instant
from ...contracts.board import BoardGoal, short_name
from ...contracts.board.goal import GoalKind, GoalOrigin
from ...contracts.board.vocabulary import GOALS as WORDS
from ...contracts.board.vocabulary import GoalStatus
from ...errors import InvalidInput
from ...facts import wanted as closed
from ...facts.shape import words_of
from ...facts.shown import wanted_of_goal
from ...fields.bodies import Answer, MakingBody, RequestBody
from ...fields.schema import NO_NUL, length
from ...goals import lifecycle
from ...goals.check import CHANNEL_LENGTH_MAX, CHECK_INTERVAL_S, FORM, check, fitted
from ...settings.config import Config
from ...subjects import PartText, Scope
from ...texts.columns import Column, history
from ...words.amounts import span_of
from ..commands import MOVED, SHORT_ID, WHOSE, Command, CommandGroup, Given, Shown
from ..kind import KeptKind, Revision
from ..outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    ListOperation,
    MakeOperation,
    Occasion,
    Paged,
    RevisionView,
    SplitOperation,
)

GOALS: Final = KeptKind(BoardGoal, 50, lambda one, _now: lifecycle.is_active(one), fitted)
"""For readers. Whoever stores one asks `goals_of`."""
Written = Callable[[Any], str]


def goals_of(config: Config) -> KeptKind[BoardGoal]:
    """Return goals, of which an owner may have as many active ones as is configured."""
    return replace(GOALS, open_max=config.goals.max)


# ---------------------------------------------------------------- what comes in and goes out


class GoalBody(MakingBody, frozen=True, kw_only=True):
    """A new goal."""

    description: str
    """What is to be reached, in at most 2,000 characters."""
    priority: int = 3
    """1 to 5; 5 is critical."""
    check_interval_secs: int = CHECK_INTERVAL_S
    """How often it's looked at: a minute to a year."""
    success_criteria: str = ""
    strategy: str = ""
    """How to pursue it; the agent changes that."""
    deadline_at: Instant | None = None
    """By when it is to be reached; absent: it stands until it's put away."""
    source_channel: str = ""
    parent: str = ""
    """The goal that it's a part of."""
    facts: closed.FactsBody = msgspec.field(default_factory=dict)
    """What is told of it in a closed form: name -> shape, and `news RULE` behind it; at most 8."""
    user_id: PartText | None = None
    """Yourself."""
    agent_id: PartText = "vigil"
    why: str = ""


class GoalChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; the rest stays as it is."""

    status: GoalStatus | None = None
    description: str | None = None
    priority: int | None = None
    check_interval_secs: int | None = None
    success_criteria: str | None = None
    strategy: str | None = None
    deadline_at: Instant | None = None
    """From then on it's a timed one."""
    parent: str | None = None
    """Empty: of none."""
    facts: closed.FactsBody | None = None
    """All of them; empty: none."""
    why: str = ""


class GoalPart(RequestBody, frozen=True, kw_only=True):
    """A part of a goal; all else it has of the whole."""

    description: str
    success_criteria: str = ""


class GoalSplit(RequestBody, frozen=True, kw_only=True):
    """What a goal is split into."""

    parts: tuple[GoalPart, ...]
    """At most 10."""
    why: str = ""


class GoalView(Answer, frozen=True, kw_only=True):
    """A goal."""

    id: str
    owner: str
    agent_id: str
    description: str
    kind: GoalKind
    deadline_at: Instant | None
    status: GoalStatus
    priority: int
    success_criteria: str
    strategy: str
    check_interval_secs: int
    last_checked_at: Instant | None
    next_check_at: Instant | None
    """None: it isn't pursued now."""
    source_channel: str
    origin: GoalOrigin
    parent: str
    session_key: str
    is_tainted: bool
    created_at: Instant
    moved_at: Instant
    facts: dict[str, str]
    """What is told of it in a closed form, as it was named; `/api/facts` has what is known."""
    revision: int
    moves: tuple[GoalStatus, ...]
    """Where it may go."""


class GoalRevision(RevisionView, frozen=True, kw_only=True):
    """One state that a goal was in, and who made it so."""

    status: GoalStatus


class GoalDetail(GoalView, frozen=True, kw_only=True):
    """A goal, and how it came to be as it is."""

    history: tuple[GoalRevision, ...]
    """The oldest first; of more than 64 the newest."""


class GoalListing(Paged, frozen=True, kw_only=True):
    """Goals, the more important first, then the older."""

    goals: tuple[GoalView, ...]


# ---------------------------------------------------------------- what is done


def _facts(found: Revision[BoardGoal], occasion: Occasion) -> dict[str, Any]:
    goal = found.entity
    return {
        "kind": goal.goal_kind,
        "check_interval_secs": goal.check_interval_s,
        "facts": closed.written(wanted_of_goal(goal)),
        "next_check_at": lifecycle.next_check_at(goal, occasion.now),
        "moves": lifecycle.moves_of(goal),
    }


def _given(wanted: GoalBody | GoalChange) -> dict[str, Any]:
    """Return what is said of a goal, by the record's fields. Raises: InvalidInput."""
    fields = lifecycle.said_of(wanted)
    return fields | (closed.of_goal(fields["facts"]) if "facts" in fields else {})


def _made(wanted: GoalBody, whose: Scope, id_: str, occasion: Occasion) -> BoardGoal:
    return check(lifecycle.begun(id_, whose, occasion.now, _given(wanted)))


def _changed(goal: BoardGoal, wanted: GoalChange, occasion: Occasion) -> BoardGoal:
    return check(lifecycle.changed(goal, _given(wanted), wanted.status, occasion.now))


def _split(
    whole: BoardGoal, wanted: GoalSplit, new_id: Callable[[], str], occasion: Occasion
) -> list[BoardGoal]:
    if not 1 <= len(wanted.parts) <= lifecycle.PARTS_MAX:
        raise InvalidInput("parts", f"must be 1 to {lifecycle.PARTS_MAX}")
    whose, said = Scope(whole.agent, whole.owner), map(lifecycle.said_of, wanted.parts)
    return [check(lifecycle.begun(new_id(), whose, occasion.now, one)) for one in said]


def described(goal: BoardGoal, checked: str, facts: str, at: Written, short: Written) -> list[str]:
    """Return what a model is told of a goal, a line and what else the goal says; `checked` is of
    looks at it, `facts` their title, `at` writes its deadline, `short` makes a line of a text."""
    until = "" if goal.deadline_at is None else f", until {at(goal.deadline_at)}"
    part = f", part of {goal.parent}" if goal.parent else ""
    head = f"{goal.status}, {goal.goal_kind}, priority {goal.priority}{until}{part}{checked}"
    texts = {"Reached when": goal.success_criteria, "Strategy": goal.strategy}
    lines = [f"{name}: {short(text)}" for name, text in texts.items() if text]
    shapes = "; ".join(f"{name}: {words_of(shape)}" for name, shape in goal.facts.items())
    more = [f"{facts}: {shapes}"] if shapes else []
    return [f"{head}: {short(goal.description)}", *lines, *more]


# ---------------------------------------------------------------- on the command line


def _remark(one: Mapping[str, Any]) -> str:
    """Say what a person should know of a goal besides its status.

    >>> _remark({"is_tainted": True, "origin": "self"})
    'made from outside content'
    """
    whose = {"self": "the agent's idea", "inferred": "a habit of yours"}.get(one["origin"], "")
    return "made from outside content" if one["is_tainted"] else whose


def _told(one: Shown) -> str:
    said = f"{one['description']!r} {WORDS[one['status']].step}; looked at every "
    return f"{said}{span_of(one['check_interval_secs'])}. Its id is {one['id'][:8]}."


def _moved(one: Shown) -> str:
    return f"It {WORDS[one['status']].step}."


def _moving(name: str, text: str, to: GoalStatus) -> Command:
    return Command(name, text, "change", always={"status": to}, summary=_moved)


_LOOKED_AT: Final = "How often the agent checks it, as 30m or 1d."
_DEADLINE: Final = "Deadline: Friday 18:00, 2026-12-24T18:00, or 30d."
_TOLD: Final = "What is told of it in a closed form, as of `vigil cron add`; or none."
_OPTIONS: Final = (
    Given("priority", "1 to 5; 5 is critical.", "--priority"),
    Given("check_interval_secs", _LOOKED_AT, "--every", time="span"),
    Given("deadline_at", _DEADLINE, "--until", metavar="INSTANT", time="until"),
    Given("success_criteria", "When it counts as reached.", "--criteria", metavar="TEXT"),
    Given("strategy", "How to pursue it.", "--strategy", metavar="TEXT"),
    Given("parent", "The goal that it's a part of.", "--parent", names="goals"),
    Given("facts", _TOLD, "--fact", metavar="NAME=SHAPE", kind=list[str], read=closed.read_typed),
)
COMMANDS: Final = CommandGroup(
    help="What an agent pursues for you: list, show, add, change, pause, resume, complete, split, "
    "archive. Default: list.",
    list_text="List goals, the more important first: your own, or with an admin token everybody's.",
    chosen=get_args(GoalStatus),
    columns=(
        SHORT_ID,
        Column("STATUS", "status"),
        Column("PRIORITY", "priority", rank=2),
        Column("GOAL", "description", length_max=60),
        Column("NEXT LOOK", "next_check_at", is_instant=True, rank=1),
        Column("DEADLINE", "deadline_at", is_instant=True),
        Column("REMARK", _remark),
    ),
    show_text="Show one: exactly what it says, and who changed it.",
    texts_before=("description",),
    fields=(
        *WHOSE,
        Column("status", lambda one: f"{one['status']}: it {WORDS[one['status']].step}"),
        Column("may go to", lambda one: ", ".join(one["moves"])),
        Column("kind", "kind"),
        Column("priority", "priority"),
        Column("deadline", "deadline_at", is_instant=True),
        Column("checked every", lambda one: span_of(one["check_interval_secs"])),
        Column("last look", "last_checked_at", is_instant=True),
        Column("next look", "next_check_at", is_instant=True),
        Column("part of", "parent"),
        Column("facts", lambda one: "; ".join(f"{k}={v}" for k, v in one["facts"].items())),
        Column("origin", lambda one: f"{one['origin']} {one['session_key']}".strip()),
        Column("remark", _remark),
        *MOVED,
    ),
    texts=("success_criteria", "strategy"),
    parts={"history": history(Column("STATUS", "status"), has_cause=True)},
    words="description",
    called=lambda one: short_name(one["id"], "g"),
    commands=(
        Command(
            "add",
            "Set a goal. Without a deadline it stands until you put it away.",
            "make",
            gives=(Given("description", "What is to be reached."), *_OPTIONS),
            summary=_told,
            tells_id=True,
        ),
        Command(
            "change",
            "Change what a goal says; --parent '' makes it a part of none.",
            "change",
            gives=(
                Given("description", "What is to be reached.", "--description", metavar="TEXT"),
                *_OPTIONS,
            ),
            summary=_moved,
        ),
        _moving("pause", "Pause a goal: it isn't looked at. Its deadline stands.", "paused"),
        _moving("resume", "Pursue a goal again, or one that waits for your leave.", "active"),
        _moving("complete", "Say that a goal with a deadline is reached.", "completed"),
        Command(
            "split",
            "Split a goal into parts, which are goals of their own.",
            "split",
            gives=(
                Given(
                    "parts",
                    "What each part is to reach.",
                    kind=list[str],
                    read=lambda parts: [{"description": part} for part in parts],
                ),
            ),
            summary=_told,
        ),
        Command(
            "archive",
            "Put a goal away, whatever became of it.",
            "end",
            summary=lambda _: "It is put away.",
        ),
    ),
)

KIND: Final = BoardKind(
    kept=GOALS,
    bounded=goals_of,
    called="a goal",
    plural="goals",
    view=GoalView,
    detail=GoalDetail,
    state=GoalRevision,
    facts=_facts,
    lists=ListOperation(
        text="List goals, the more important first, then the older.",
        answer=GoalListing,
        by="status",
        choices=GoalStatus,
        unchosen="all that haven't ended",
        shows=lambda goal, status, _: goal.status in (lifecycle.HELD if not status else (status,)),
        rank=lambda found, _: lifecycle.rank(found.entity),
    ),
    makes=MakeOperation(
        text="Make a goal; 422 beyond `goals.max` that are active.",
        body=GoalBody,
        make=_made,
    ),
    changes=ChangeOperation(
        text="Move a goal, or change what it says; 412 if it was changed since it was read.",
        body=GoalChange,
        change=_changed,
        is_end=lambda wanted: wanted.status not in (None, "active") and not _given(wanted),
        field="status",
    ),
    ends=EndOperation(
        name="archive_goal",
        text="Put a goal away, whatever became of it; its history stays.",
        end=lambda goal, occasion: lifecycle.moved(goal, "archived", occasion.now),
        why="archived",
    ),
    splits=SplitOperation(
        name="split_goal",
        text="Split a goal into parts, which are goals of their own; it goes on beside them.",
        body=GoalSplit,
        statuses=lifecycle.HELD,
        split=_split,
        field="parts",
    ),
    limits={
        GoalBody: FORM | {"source_channel": length(CHANNEL_LENGTH_MAX, NO_NUL)},
        GoalChange: FORM,
        GoalPart: {name: FORM[name] for name in ("description", "success_criteria")},
        GoalSplit: {"parts": {"minItems": 1, "maxItems": lifecycle.PARTS_MAX}},
    },
    examples={
        GoalBody: {
            "a standing one": {
                "description": "Keep the inbox clean",
                "check_interval_secs": 3600,
                "userId": "ann",
            },
            "a timed one": {
                "description": "Ship the release",
                "deadline_at": "2030-01-01T18:00:00Z",
                "success_criteria": "The tag is public",
                "priority": 5,
            },
        },
        GoalChange: {"pause it": {"status": "paused", "why": "away"}},
        GoalSplit: {"two parts": {"parts": [{"description": "Tests"}, {"description": "Notes"}]}},
    },
    commands=COMMANDS,
)
