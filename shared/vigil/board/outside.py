"""What a kind of the board is to those outside: what is asked of it, and answered. Pure.

A kind is one module of `kinds`, whose `KIND` is a `BoardKind`: the structs that come in and go out,
and pure functions that make a record of what is asked. HTTP and the command line are views of it:
`services.gateway.board.kinds` serves whatever is declared, `vigil.cli.board.kinds` has its
commands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal

import msgspec

from ..contracts import Instant
from ..errors import InvalidInput
from ..fields.bodies import Answer, RequestBody
from ..fields.schema import Schema
from ..registry import declared
from ..settings.config import Config
from ..subjects import Scope
from . import kinds as _folder
from .commands import Command, CommandGroup
from .kind import E, KeptKind, Revision


class RevisionView(Answer, frozen=True, kw_only=True):
    """One state that something on the board was in, and who made it so."""

    revision: int
    at: Instant
    by: str
    why: str
    cause: str


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """When something is asked or shown, by whom, and as what is configured."""

    now: datetime
    """Aware, UTC."""
    by: str
    config: Config
    zone: str = "UTC"
    """IANA name of the clocks of who asks, or of whose it is that's changed; only of rows."""
    others: tuple[Any, ...] = ()
    """The owner's others, if what is asked names one of them; only of rows."""
    beside: Mapping[str, Any] = {}
    """What is known elsewhere of those that are shown, by their ids; see `BoardKind.beside`."""


class Paged(Answer, frozen=True, kw_only=True):
    """A page of a list."""

    next_after: str | None = None
    """The last of this page, if there are more: `after` goes on from there."""


class ListForm(msgspec.Struct, frozen=True, kw_only=True):
    """A list of what an owner has: how it is asked for, and what the document says of it."""

    text: str
    """What the OpenAPI document says of it, as of every operation."""
    answer: type[Answer]
    """It has the views under the kind's plural; with a `limit` it is a `Paged`."""
    by: str
    """The parameter that chooses among them."""
    choices: Any
    """The type of that one."""
    default: Any = None
    """What is chosen where nothing is said."""
    said: str = ""
    """What the document says of choices by themselves; of a flag, all that it says."""
    unchosen: str = ""
    """What is listed where nothing is chosen, if that isn't simply all."""
    limit: int | None = 200
    """Unless more is asked for; None: nobody asks, it's all."""
    limit_max: int = 500


class ListOperation(ListForm, Generic[E], frozen=True, kw_only=True):
    """A list of those that the board is the truth of."""

    shows: Callable[[E, Any, Occasion], bool]
    """Whether one is listed, by what was chosen; None: nothing was."""
    rank: Callable[[Revision[E], Occasion], Any]
    is_newest_first: bool = False
    """The highest rank comes first."""


class Named(msgspec.Struct, frozen=True):
    """A field of a request that names something else on the board, which its owner has to have."""

    field: str
    what: Literal["approval", "goal", "row"]
    is_of_agent: bool = False
    """Only of the same agent; otherwise of any of the owner's."""


class BodyOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that a request's body tells of."""

    text: str
    body: type[RequestBody]


class MakeOperation(BodyOperation, Generic[E], frozen=True, kw_only=True):
    """Making one. It's its owner's who asks."""

    make: Callable[[Any, Scope, str, Occasion], E]
    """Gets the body, whose it will be, and a new id. Raises: InvalidInput."""
    is_new: Callable[[E], bool] | None = None
    """Of what is learned: whether nothing was known before. None: what is made is new."""
    names: tuple[Named, ...] = ()
    among: Callable[[E, list[E]], E] | None = None
    """Makes one fit among the owner's open ones. Raises: BoardRefusal. None: it fits."""
    cause: Callable[[E], str] = lambda _: ""
    """The id of what led to it, if that isn't the person's own word."""
    other_names: Mapping[str, str] | None = None
    """Names that fields of the body have, too, and those that they have."""
    errors: tuple[int, ...] = ()
    """But for 403, 413, 422 and 503."""


class ChangeOperation(BodyOperation, Generic[E], frozen=True, kw_only=True):
    """Changing one, as its owner wants it."""

    name: str = ""
    """`operationId` of that document; empty: as of most kinds."""
    change: Callable[[E, Any, Occasion], E]
    """Raises: InvalidInput."""
    is_end: Callable[[Any], bool] = lambda _: False
    """Whether a body only ends it, which an admin may, too."""
    field: str | None = None
    """That a refusal names."""
    other_names: Mapping[str, str] | None = None
    """As of `MakeOperation`."""


class EndOperation(msgspec.Struct, Generic[E], frozen=True, kw_only=True):
    """Ending one, which an admin may, too: its history stays."""

    name: str
    text: str
    end: Callable[[E, Occasion], E]
    """Raises: InvalidInput, BoardRefusal."""
    why: str
    """What its history says."""


class SplitOperation(BodyOperation, Generic[E], frozen=True, kw_only=True):
    """Splitting one into parts, for all of which there has to be room; it goes on beside them."""

    name: str
    statuses: tuple[str, ...]
    """In which it may be split."""
    split: Callable[[E, Any, Callable[[], str], Occasion], list[E]]
    """Gets what makes new ids. Raises: InvalidInput."""
    field: str
    """That a refusal names."""


class ServedKind(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A kind of what stands on the board, as HTTP, its document and the command line have it."""

    called: str
    """One of it, in a sentence."""
    plural: str
    """In its path: ``/api/{plural}``."""
    own_path: str = ""
    """Its path, if that is another."""
    view: type[Answer]
    """What a list shows of one."""
    detail: type[Answer] | None = None
    """What is shown of one alone, if that is more."""
    lists: ListForm
    show_text: str = ""
    """What the document says of showing one; empty: as of most kinds."""
    makes: BodyOperation | None = None
    changes: BodyOperation | None = None
    splits: BodyOperation | None = None
    limits: Mapping[type[RequestBody], Mapping[str, Schema]] = {}
    """What the document says of fields beyond their types, by body."""
    together: Mapping[type[RequestBody], Schema] = {}
    """What it says of the fields of a body together."""
    examples: Mapping[type[RequestBody], Mapping[str, Any]] = {}
    """Bodies that are taken, by what each does."""
    commands: CommandGroup

    @property
    def noun(self) -> str:
        return self.called.split()[1]

    @property
    def path(self) -> str:
        return self.own_path or f"/api/{self.plural}"

    def body_of(self, command: Command) -> type[RequestBody]:
        """Return what a command sends."""
        operation: Any = {"make": self.makes, "split": self.splits}.get(command.does, self.changes)
        body: type[RequestBody] = operation.body
        return body


class BoardKind(ServedKind, Generic[E], frozen=True, kw_only=True, eq=False):
    """A kind of what the board is the truth of, as its owners have it."""

    kept: KeptKind[E]
    bounded: Callable[[Config], KeptKind[E]] | None = None
    """How it's kept by what is configured; None: nothing is."""
    beside: KeptKind[Any] | None = None
    """Another record under the same id, of what is counted of one; only a service writes it."""
    state: type[Answer] | None = None
    """What `detail` shows of each revision, in its `history`."""
    facts: Callable[[Revision[E], Occasion], dict[str, Any]] = lambda _found, _occasion: {}
    """What the view has that the record hasn't, or has otherwise."""
    state_facts: Callable[[E, Occasion], dict[str, Any]] = lambda _entity, _occasion: {}
    """The same of a revision of its history."""
    lists: ListOperation[E]
    makes: MakeOperation[E] | None = None
    changes: ChangeOperation[E] | None = None
    ends: EndOperation[E] | None = None
    splits: SplitOperation[E] | None = None
    action: str = "gateway.board"
    """Of the log line that tells of a change."""

    def kept_by(self, config: Config) -> KeptKind[E]:
        """Return how it's kept as things are configured."""
        return self.kept if self.bounded is None else self.bounded(config)

    def shown(self, found: Revision[E], occasion: Occasion) -> dict[str, Any]:
        """Return the fields of its view."""
        own = {"agent_id": found.entity.agent, "revision": found.number}
        own |= self.facts(found, occasion)
        return fields_of(self.view, found.entity, own)

    def chosen(
        self, there: list[Revision[E]], chosen: Any, after: str, occasion: Occasion
    ) -> list[Revision[E]]:
        """Return those that a list of them shows, in its order.

        Args:
            after: only those that follow the one of that id, whatever it is by now; empty: all.

        Raises:
            InvalidInput: there is none of that id.
        """
        wanted, rank = self.lists, self.lists.rank
        ranked = sorted(there, key=lambda one: rank(one, occasion), reverse=wanted.is_newest_first)
        ids = [one.entity.id for one in ranked] if after else []
        if after and after not in ids:
            raise InvalidInput("after", "there is none of that id")
        rest = ranked[ids.index(after) + 1 :] if after else ranked
        return [one for one in rest if wanted.shows(one.entity, chosen, occasion)]

    def listing(
        self, found: list[Revision[E]], occasion: Occasion, limit: int | None = None
    ) -> Answer:
        """Return the first of these, as a list answers them; None: all."""
        page = found[:limit]
        views = tuple(self.view(**self.shown(one, occasion)) for one in page)
        more = {"next_after": page[-1].entity.id} if len(found) > len(page) else {}
        return self.lists.answer(**{self.plural: views}, **more)

    def answer(self, found: Revision[E], history: list[Revision[E]], occasion: Occasion) -> Answer:
        """Return what a question for one answers. `history`: of its revisions, the oldest first."""
        if self.detail is None or self.state is None:
            return self.view(**self.shown(found, occasion))
        states = tuple(self._state(self.state, one, occasion) for one in history)
        return self.detail(**self.shown(found, occasion), history=states)

    def _state(self, kind: type[Answer], one: Revision[E], occasion: Occasion) -> Answer:
        own = {"revision": one.number, "at": one.at} | msgspec.structs.asdict(one.change)
        own |= self.state_facts(one.entity, occasion)
        return kind(**fields_of(kind, one.entity, own))


def fields_of(kind: type[msgspec.Struct], record: Any, own: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a view: `own`, and for all others those of the record."""
    names = kind.__struct_fields__
    return {name: own[name] if name in own else getattr(record, name) for name in names}


@functools.cache
def served_kinds() -> tuple[ServedKind, ...]:
    """Return every kind that is declared."""
    return declared(_folder.__name__, ServedKind)


def kinds() -> dict[str, BoardKind[Any]]:
    """Return those that the board is the truth of, by their plural."""
    return {one.plural: one for one in served_kinds() if isinstance(one, BoardKind)}
