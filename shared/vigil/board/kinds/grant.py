"""Standing grants: what a person allows an agent beforehand (LOOPS L-8). Pure.

Only the person themselves gives leave, with their own token, or a member for their team; an admin
may look, and end. Nothing that a model says comes here. Uses are counted beside, by the executor.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final, Literal

from msgspec.structs import replace

from ...contracts import Grant, GrantUse, Instant
from ...contracts.board.grant import AnyConstraint, GrantMaker
from ...fields.bodies import Answer, MakingBody
from ...fields.schema import LINE, MAYBE_ID, SESSION_KEY, within
from ...grants import check as checks
from ...grants import rule, typed
from ...grants.rule import Standing
from ...subjects import PartText, Scope
from ...texts.columns import Column, short
from ...texts.exact import exact
from ..commands import AGENT, SHORT_ID, WHOSE, Agreement, Command, CommandGroup, Given, Shown
from ..kind import BoardRefusal, KeptKind, Revision
from ..outside import BoardKind, EndOperation, ListOperation, MakeOperation, Named, Occasion, Paged

UNUSED_DAYS: Final = 30
"""After so long without a use a grant is proposed for removal."""
GIST_LENGTH_MAX: Final = 80
GrantState = Literal["standing", "ended"]

GRANTS: Final = KeptKind(
    Grant,
    200,
    lambda one, now: (
        one.revoked_at is None and not (one.expires_at is not None and one.expires_at <= now)
    ),
)
USES: Final = KeptKind(GrantUse, 200, lambda _one, _now: True)


def standing_of(grant: Grant, revision: int, use: GrantUse | None) -> Standing:
    """Return a grant, as a revision has it, with what was counted of it."""
    return Standing(
        grant=grant,
        revision=revision,
        uses=0 if use is None else use.uses,
        last_used_at=None if use is None else use.last_used_at,
    )


# ---------------------------------------------------------------- what comes in and goes out


class GrantBody(MakingBody, frozen=True, kw_only=True):
    """What is allowed. Everything that is left out narrows it, but for limits."""

    tool: str
    """`shell`, `server__tool`, or `server__*`."""
    constraints: tuple[AnyConstraint, ...] = ()
    agent_id: PartText = "vigil"
    name: str | None = None
    """Absent: the first free one of `g1`, `g2`, …"""
    session_key: str = ""
    """The one conversation that it holds in; empty: all of the agent's."""
    row: str = ""
    """The one row of the timetable whose runs it holds in, by its id; empty: it's for no row."""
    goal: str = ""
    """The one goal that it holds for, by its id; empty: it's for no goal."""
    expires_at: Instant | None = None
    uses_max: int = 0
    """0: no limit."""
    holds_for_outside: bool = False
    """Also once content from outside had a part in the decision."""
    approval_id: str | None = None
    """The request that it was made of."""
    why: str = ""


class GrantView(Answer, frozen=True, kw_only=True):
    """A standing grant, and how it was used."""

    id: str
    name: str
    owner: str
    agent_id: str
    tool: str
    constraints: tuple[AnyConstraint, ...]
    session_key: str
    row: str
    goal: str
    expires_at: Instant | None
    uses_max: int
    holds_for_outside: bool
    made_by: GrantMaker
    made_at: Instant
    cause: str
    why: str
    revoked_at: Instant | None
    revision: int
    uses: int
    last_used_at: Instant | None
    state: GrantState
    ended: str
    """Why it doesn't stand any more; empty: it does."""
    is_unused: bool
    """It stands, and wasn't used for 30 days."""


class GrantList(Paged, frozen=True, kw_only=True):
    """Standing grants, the newest first."""

    grants: tuple[GrantView, ...]


# ---------------------------------------------------------------- what is done


def _facts(found: Revision[Grant], occasion: Occasion) -> dict[str, Any]:
    one = standing_of(found.entity, found.number, occasion.beside.get(found.entity.id))
    why_ended = rule.ending(one, occasion.now)
    since = max(one.grant.made_at, one.last_used_at or one.grant.made_at)
    return {
        "uses": one.uses,
        "last_used_at": one.last_used_at,
        "state": "standing" if why_ended is None else "ended",
        "ended": why_ended or "",
        "is_unused": why_ended is None and occasion.now - since >= timedelta(days=UNUSED_DAYS),
    }


def _shows(grant: Grant, state: str, occasion: Occasion) -> bool:
    one = standing_of(grant, 0, occasion.beside.get(grant.id))
    is_standing = rule.ending(one, occasion.now) is None
    return state in ("all", "standing" if is_standing else "ended")


_CARRIED: Final = tuple(
    name for name in GrantBody.__struct_fields__ if name in Grant.__struct_fields__
)
"""What a grant has as it is asked for."""


def _made(wanted: GrantBody, whose: Scope, id_: str, occasion: Occasion) -> Grant:
    carried = {name: getattr(wanted, name) for name in _CARRIED}
    grant = Grant(
        **carried | {"name": "g1" if wanted.name is None else wanted.name},
        id=id_,
        owner=whose.owner,
        agent=whose.agent,
        made_by="person" if wanted.approval_id is None else "approval",
        made_at=occasion.now,
        cause=wanted.approval_id or "",
    )
    checks.check(grant)
    return replace(grant, name="") if wanted.name is None else grant


def _named(grant: Grant, others: list[Grant]) -> Grant:
    """Return a new grant with a name that none of its owner's has. Raises: BoardRefusal."""
    taken = {one.name for one in others}
    if grant.name in taken:
        words = f"a grant of yours is named {grant.name!r} already"
        raise BoardRefusal(words, "name", is_conflict=True)
    free = (f"g{number}" for number in range(1, len(taken) + 2))
    return replace(grant, name=grant.name or next(one for one in free if one not in taken))


def _revoked(grant: Grant, occasion: Occasion) -> Grant:
    if grant.revoked_at is not None:
        return grant
    if grant.made_by == "configuration":
        raise BoardRefusal("it stands in vigil.toml: remove it there", is_conflict=True)
    return replace(grant, revoked_at=occasion.now)


# ---------------------------------------------------------------- on the command line


def _uses(one: Shown) -> str:
    return f"{one['uses']} of {one['uses_max']}" if one["uses_max"] else str(one["uses"])


def _remark(one: Shown) -> str:
    """Return what there is to say of it; what isn't used is proposed for removal (LOOPS L-8).

    >>> _remark({"name": "g1", "made_by": "person", "is_unused": True, "ended": ""})
    'unused for 30 days: vigil grants revoke g1'
    """
    is_configured = one["made_by"] == "configuration"
    end = "remove it there" if is_configured else f"vigil grants revoke {one['name']}"
    unused = f"unused for 30 days: {end}" if one["is_unused"] else ""
    made = "of vigil.toml" if is_configured else ""
    return str(one["ended"]) or ", ".join(filter(None, (made, unused)))


def _built(typed_: dict[str, Any]) -> dict[str, Any]:
    """Return a body, with the options of constraints made into these. Raises: InvalidInput."""
    options = ("command", "more", "url", "folder", "equal", "empty")
    rest = {name: value for name, value in typed_.items() if name not in options}
    given = {name: typed_[name] for name in options}
    return {**rest, "constraints": typed.constraints(**given)}


def _proposed(body: Shown) -> Iterator[str]:
    """Yield what is to be allowed, exactly."""
    limits = body["constraints"]
    when = f"if\n{exact(limits, indent=2)}" if limits else "whatever it is called with:"
    yield f"{body['agent']} may run {body['tool']} without asking, {when}"
    outside = "also" if body.get("holds_for_outside") else "not"
    where = body.get("session_key") or "in all conversations"
    where = f"in runs of row {row} of the timetable" if (row := body.get("row")) else where
    where = f"in what is done for goal {goal}" if (goal := body.get("goal")) else where
    times = {0: "any number of times", 1: "once"}.get(n := body.get("uses_max") or 0, f"{n} times")
    until = body.get("expires_at") or "it is revoked"
    yield f"{where}; {times}; until {until}; {outside} when outside content had a part."


TERMS: Final = (
    Given("session_key", "In this conversation only.", "--session", metavar="KEY", kind=str),
    Given(
        "row",
        "In runs of this row of the timetable only.",
        "--row",
        metavar="NAME",
        names="own row",
    ),
    Given("goal", "In what is done for this goal only.", "--goal", metavar="ID", names="goals"),
    Given(
        "expires_at",
        "2027-01-01, or 30d for in 30 days.",
        "--expires",
        metavar="WHEN",
        time="until",
    ),
    Given("uses_max", "How often, at most. 0: no limit.", "--uses", default=0, least=0),
    Given(
        "holds_for_outside",
        "Also once content from outside had a part in the decision.",
        "--outside",
    ),
)
"""In which cases a grant holds; what is made of a request has these options, too."""
ADD: Final = Command(
    "add",
    "Allow calls beforehand. It's shown first, and made when you agree.",
    "make",
    gives=(
        Given("tool", "shell, http_get, SERVER__TOOL, or SERVER__*."),
        Given("command", "shell: the program and its first arguments.", "--command", kind=str),
        Given(
            "more",
            "What may follow: nothing, operands (no options), anything.",
            "--more",
            default="nothing",
            kind=str,
        ),
        Given("url", "This host, and paths below that of the URL.", "--url", kind=str),
        Given("folder", "Paths in this folder.", "--folder", kind=str),
        Given(
            "equal",
            "An argument has this value.",
            "--equal",
            metavar="FIELD=JSON",
            kind=list[str],
        ),
        Given(
            "empty",
            "An argument names nobody, or nothing.",
            "--empty",
            metavar="FIELD",
            kind=list[str],
        ),
        Given(AGENT, ""),
        Given("name", "Instead of g1, g2, …", "--name", kind=str),
        *TERMS,
        Given("why", "For yourself.", "--why", default=""),
    ),
    has_why=False,
    builds=_built,
    agreement=Agreement(_proposed, "Allow this from now on?"),
    summary=lambda one: f"Allowed as {one['name']}. To end it: vigil grants revoke {one['name']}",
)
COMMANDS: Final = CommandGroup(
    help="What an agent may do without asking: list, add, show, revoke. Default: list.",
    list_text="List what was allowed beforehand, the newest first; REMARK names what isn't used.",
    choice=Given(
        "state",
        "Also what ended.",
        "--all",
        kind=bool,
        read=lambda is_all: "all" if is_all else "standing",
    ),
    empty="Nothing is allowed beforehand.",
    chosen=("standing", "all"),
    columns=(
        Column("NAME", "name"),
        SHORT_ID,
        Column("TOOL", "tool"),
        Column("ALLOWS", lambda one: short(exact(one["constraints"]), GIST_LENGTH_MAX)),
        Column("USES", _uses, rank=1),
        Column("LAST USED", "last_used_at", is_instant=True, rank=2),
        Column("REMARK", _remark),
    ),
    show_text="Show one: exactly what it allows, and how it was used.",
    fields=(
        Column("name", "name"),
        *WHOSE,
        Column("tool", "tool"),
        Column("session", "session_key"),
        Column("row", "row"),
        Column("goal", "goal"),
        Column(
            "outside", lambda one: "holds for outside content" if one["holds_for_outside"] else ""
        ),
        Column("expires", "expires_at", is_instant=True),
        Column("uses", _uses),
        Column("last used", "last_used_at", is_instant=True),
        Column("made by", "made_by"),
        Column("made", "made_at", is_instant=True),
        Column("why", "why"),
        Column("remark", _remark),
        Column("revision", "revision"),
    ),
    documents={"allows": "constraints"},
    words="name",
    is_named=True,
    offered="tool",
    commands=(
        ADD,
        Command(
            "revoke", "End one, at once.", "end", summary=lambda one: f"Revoked {one['name']}."
        ),
    ),
)

KIND: Final = BoardKind(
    kept=GRANTS,
    called="a grant",
    plural="grants",
    beside=USES,
    view=GrantView,
    facts=_facts,
    lists=ListOperation(
        text="List what was allowed beforehand, the newest first.",
        answer=GrantList,
        by="state",
        choices=Literal[GrantState, "all"],
        default="standing",
        said="all: also what ended",
        shows=_shows,
        rank=lambda found, _: (found.entity.made_at, found.entity.id),
        is_newest_first=True,
    ),
    show_text="Show one; its ETag is its revision.",
    makes=MakeOperation(
        text="Allow calls beforehand; 422 for what would allow everything, and beyond 200.",
        body=GrantBody,
        make=_made,
        names=(Named("approval_id", "approval"), Named("row", "row"), Named("goal", "goal")),
        among=_named,
        cause=lambda grant: grant.cause,
        errors=(404, 409),
    ),
    ends=EndOperation(
        name="revoke_grant",
        text="End one: nothing runs by it from then on.",
        end=_revoked,
        why="revoked",
    ),
    limits={
        GrantBody: {
            "tool": {
                "pattern": r"^([A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]*[A-Za-z0-9-]__\*)$",
                "not": {"pattern": "^_*$"},
            },
            "session_key": {"pattern": f"^$|{SESSION_KEY['pattern']}"},
            "constraints": {"maxItems": checks.CONSTRAINTS_MAX},
            "name": {"pattern": "^[a-z0-9][a-z0-9-]{0,31}$"},
            "row": MAYBE_ID,
            "goal": MAYBE_ID,
            "uses_max": within(0, checks.USES_MAX),
            "why": LINE | {"maxLength": checks.WHY_LENGTH_MAX},
        }
    },
    examples={
        GrantBody: {
            "a command": {
                "tool": "shell",
                "constraints": [{"kind": "argv", "argv": ["df", "-h"], "more": "operands"}],
                "holds_for_outside": True,
                "why": "the disk",
            },
        },
    },
    commands=COMMANDS,
    action="gateway.grant",
)
