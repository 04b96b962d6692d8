"""The commands of each kind of the board: made of what `vigil.board.kinds` declares."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final, cast, get_args, get_type_hints

import msgspec
import typer

from vigil.board.commands import AGENT, Command, Given
from vigil.board.outside import ServedKind, kinds
from vigil.errors import InvalidInput
from vigil.sdk.calls.kind import KindCalls
from vigil.sdk.client import Client
from vigil.teams import TEAM
from vigil.texts.exact import exact

from .. import completion, exits, options, output, prefixes, tables, times
from ..registry import CommandLine, ListedGroup, Work, keyword, parameters_of, with_parameters
from ..tables import Column, Result

_NEEDED: Final = inspect.Parameter.empty
ID_LENGTH: Final = 32
"""Hex digits of an id that is whole."""
_AGENT: Final = keyword(AGENT, options.Agent, default="vigil")
_YES: Final = keyword(
    "yes", Annotated[bool, typer.Option("--yes", help="Don't ask.")], default=False
)
Why = Annotated[str, typer.Option("--why", help="For its history.")]


class KindCommands:
    """The group of one kind."""

    def __init__(self, kind: ServedKind) -> None:
        self._kind = kind
        self._said = kind.commands

    def group(self) -> CommandLine:
        """Return its commands: `list` and `show`, and those that it declares."""
        app = CommandLine(cls=ListedGroup, help=self._said.help)
        self._add(app, "list", self._said.list_text, self._list, *self._chosen())
        self._add(app, "show", self._said.show_text, self._show, self._id())
        for one in self._said.commands:
            run = self._make if one.does == "make" else self._change
            self._add(app, one.name, one.text, partial(run, one), *self._parameters(one))
        return app

    @staticmethod
    def _add(
        app: CommandLine,
        name: str,
        text: str,
        work: Callable[..., Result],
        *parameters: inspect.Parameter,
    ) -> None:
        def run(**given: Any) -> Result:
            return work(**given)

        run.__doc__ = text
        run.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
        app.command(name)(run)

    # ------------------------------------------------------------ parameters

    def _choice(self) -> inspect.Parameter:
        lists = self._kind.lists
        if self._said.choice is not None:
            return _parameter(msgspec.structs.replace(self._said.choice, field="chosen"), None)
        text = "Only those." + (lists.unchosen and f" Default: {lists.unchosen}.")
        option = typer.Option(f"--{lists.by}", help=text)
        return keyword("chosen", Annotated[lists.choices | None, option], default=None)

    def _chosen(self) -> list[inspect.Parameter]:
        said, lists = self._said, self._kind.lists
        if not said.limit_text:
            return [self._choice()]
        option = typer.Option("--limit", min=1, max=lists.limit_max, help=said.limit_text)
        return [self._choice(), keyword("limit", Annotated[int, option], default=lists.limit)]

    def _id(self) -> inspect.Parameter:
        return keyword("id_", Annotated[str, self.argument()], default=_NEEDED)

    def argument(self) -> Any:
        """Return the argument that names one."""
        said, kind = self._said, self._kind
        offer = completion.of_kind(kind.plural, said.words, said.offered, kind.own_path)
        return options.id_of(kind.called, f"vigil {kind.plural}", offer, said.id_help)

    def _parameters(self, command: Command) -> list[inspect.Parameter]:
        is_new = command.does == "make"
        given = self.typed(command, command.gives)
        first = [] if is_new else [self._id()]
        is_said = any(one.field == AGENT for one in command.gives)
        agent = [_AGENT] if is_new and not is_said else []
        why = [keyword("why", Why, default="")] if command.has_why and command.does != "end" else []
        yes = [] if command.agreement is None else [_YES]
        return [*first, *given, *agent, *why, *yes]

    def typed(self, command: Command, gives: Iterable[Given]) -> list[inspect.Parameter]:
        """Return the arguments and options for these fields of what a command sends."""
        types = get_type_hints(self._kind.body_of(command)) if command.gives else {}
        return [
            _AGENT if one.field == AGENT else _parameter(one, types.get(one.field)) for one in gives
        ]

    # ------------------------------------------------------------ work

    def _list(self, chosen: Any, limit: int | None = None) -> Result:
        said, plural, lists = self._said, self._kind.plural, self._kind.lists
        if said.choice is not None and said.choice.read is not None:
            chosen = said.choice.read(chosen)
        limit = lists.limit_max if said.lists_all else limit
        client = options.client()
        found = self.calls(client).listed(**{lists.by: chosen}, limit=limit)
        is_unchosen = chosen in (None, lists.default)
        empty = (is_unchosen and said.empty_unchosen) or said.empty or f"No {plural}."
        columns = _with_whose(self._named_too(said.columns), found, client.me)
        return tables.listing(plural, found, columns, empty=empty.format(chosen))

    def _show(self, id_: str) -> Result:
        found = self.find(options.client(), id_)
        return Result(found, partial(self._print, found))

    def _print(self, found: dict[str, Any]) -> None:
        said = self._said
        for name in said.texts_before:
            output.data(exact(found[name], indent=2))
        tables.fields([*self._name("name"), *said.fields], found)
        for name, columns in said.first_parts.items():
            if found[name]:
                tables.table(columns, found[name])
                output.data("")
        for name in said.texts:
            if found.get(name):
                output.data(name)
                output.data(exact(found[name], indent=2))
        if said.texts:
            output.data("")
        for title, name in said.documents.items():
            if found.get(name) is not None:
                output.data(title)
                output.data(exact(found[name], indent=2))
        if said.documents and said.parts:
            output.data("")
        for name, columns in said.parts.items():
            tables.table(columns, found[name])

    def _make(self, command: Command, /, *, yes: bool = False, **given: Any) -> Result:
        client = options.client()
        body = _body(client, command, given)
        agree(command, body, yes=yes)
        return _done(command, self.calls(client).make(**body))

    def _change(self, command: Command, /, id_: str, **given: Any) -> Result:
        client = options.client()
        found, calls = self.find(client, id_), self.calls(client)
        if command.only and found["status"] != command.only:
            words = f"{found[self._said.words]!r} is {found['status']}, not {command.only}"
            raise exits.NotReady(words)
        if command.does == "end":
            return _done(command, calls.end(found["id"], revision=found["revision"]))
        body = _body(client, command, given)
        if command.does == "split":
            made = calls.split(found["id"], revision=found["revision"], **body)
            say = command.summary or (lambda one: str(one["id"]))
            said, ids = " ".join(map(say, made)), [one["id"] for one in made]
            return tables.made(said, {self._kind.plural: made}, *ids)
        return _done(command, calls.change(found["id"], revision=found["revision"], **body))

    def _named_too(self, columns: Sequence[Column]) -> Sequence[Column]:
        return [*columns[:1], *self._name("NAME"), *columns[1:]]

    def _name(self, title: str) -> list[Column]:
        """Return the column of what a person calls one besides, if they do."""
        called = self._said.called
        return [] if called is None else [Column(title, called)]

    def calls(self, client: Client) -> KindCalls:
        """Return what the client can do with it."""
        return KindCalls(client, self._kind.plural, self._kind.own_path)

    def find(self, client: Client, id_: str) -> dict[str, Any]:
        """Return what has that name, or whose id begins so. Raises: NotReady, InvalidInput."""
        return self.calls(client).get(self.whole(client, id_))

    def whole(self, client: Client, id_: str) -> str:
        """Return the id of what has that name, or whose id begins so. Raises: as `find`."""
        calls, wanted = self.calls(client), self._kind.lists
        limit = wanted.limit and wanted.limit_max
        chosen = self._said.chosen
        lists: Iterable[Any] = (calls.listed(**{wanted.by: one}, limit=limit) for one in chosen)
        names: set[str] | None = None
        if self._said.is_named:
            lists = list(lists)
            names = {str(one[self._said.words]) for listed in lists for one in listed}
            named = self._named(client, id_, lists)
            if named is not None:
                return named
        elif (called := self._said.called) and len(id_) < ID_LENGTH:
            lists = list(lists)
            ids = {str(one["id"]): called(one) for listed in lists for one in listed}
            names = set(ids.values())
            meant = [one for one, name in ids.items() if name == id_.lower()]
            if len(meant) == 1:
                return meant[0]
        there = (one["id"] for listed in lists for one in listed)
        return prefixes.whole(self._kind.noun, id_, there, names=names)

    def _named(self, client: Client, name: str, lists: list[list[dict[str, Any]]]) -> str | None:
        """Return the id of what has that name. Raises: InvalidInput, several have it."""
        field, (first, *later) = self._said.words, lists
        if named := prefixes.named(self._kind.noun, name, first, client.me, field=field):
            return named
        if found := [one for there in later for one in there if one[field] == name]:
            me = client.me()
            return str(next((one for one in found if prefixes.is_own(one, me)), found[0])["id"])
        return None


def _with_whose(
    columns: Sequence[Column],
    found: Sequence[Mapping[str, Any]],
    me: Callable[[], Mapping[str, Any]],
) -> Sequence[Column]:
    """Return the columns of a list, with the agent and the owner where those listed have several,
    or it is another than whoever asks: an admin sees everybody's.

    Args:
        me: as `Client.me`; asked where it isn't told without.

    >>> id_, of_two = Column("ID", "id"), [{"owner": "ann"}, {"owner": "ben"}]
    >>> me = lambda: {"user": "ann"}
    >>> [len(_with_whose([id_], listed, me)) for listed in (of_two, of_two[:1], of_two[1:], [])]
    [2, 1, 2, 1]
    """
    titles, owners = {one.title for one in columns}, {one.get("owner") for one in found}
    has_others = len(owners) > 1 or bool(owners - {None, TEAM} and owners != {me()["user"]})
    shown = {"OWNER": has_others, "AGENT": len({one.get("agent_id") for one in found}) > 1}
    whose = [
        Column(title, field)
        for title, field in (("OWNER", "owner"), ("AGENT", "agent_id"))
        if title not in titles and shown[title]
    ]
    return [*columns[:1], *whose, *columns[1:]]


def _parameter(given: Given, kind: Any) -> inspect.Parameter:
    """Return what is typed for a field; what isn't typed is left as it is."""
    kind = given.kind or (str if given.time else _typed(kind))
    if not given.option:
        argument = Annotated[kind, typer.Argument(help=given.help)]
        is_needed = given.default is None
        return keyword(given.field, argument, default=_NEEDED if is_needed else given.default)
    metavar = given.metavar or ("SPAN" if given.time == "span" else None)
    option = typer.Option(given.option, help=given.help, metavar=metavar, min=given.least)
    if kind is bool:
        return keyword(given.field, Annotated[bool, option], default=False)
    if given.default is not None:
        return keyword(given.field, Annotated[kind, option], default=given.default)
    return keyword(given.field, Annotated[kind | None, option], default=None)


def _typed(kind: Any) -> Any:
    """Return what is typed for a field of that kind: of an instant a text."""
    return str if datetime in (kind, *get_args(kind)) else kind


def _body(client: Client, command: Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body: what was typed, and what the command says by itself."""
    body = {**command.always, **given}
    may_clear = command.does == "change"
    body |= filled(client, command.gives, body, may_clear=may_clear)
    return body if command.builds is None else command.builds(body)


def filled(
    client: Client, gives: Iterable[Given], typed: Mapping[str, Any], *, may_clear: bool = False
) -> dict[str, Any]:
    """Return the fields of a body, by what was typed for each. Raises: InvalidInput, NotReady."""
    return {one.field: _value(client, one, typed[one.field], may_clear=may_clear) for one in gives}


def _value(client: Client, one: Given, typed: Any, *, may_clear: bool = False) -> Any:
    """Return what a field is, by what was typed for it. Raises: InvalidInput, NotReady."""
    if typed is None or typed == []:
        return None
    if one.names == "own row":
        return row_of(client, typed)
    if one.names and not (typed == "" and may_clear):
        return id_of(client, one.names, typed)
    if one.time:
        return _instant_or_span(client, one, typed)
    return typed if one.read is None else one.read(typed)


def _instant_or_span(client: Client, one: Given, typed: str) -> Any:
    """Return the time that was typed. Raises: InvalidInput."""
    if one.time == "span":
        return times.seconds(one.option, typed)
    now = datetime.now(UTC)
    if one.time == "at":
        return times.end(one.option, typed, now)
    return times.until(one.option, typed, now, partial(_zone, client))


def _zone(client: Client) -> str:
    return str(client.person()["timezone"])


def row_of(client: Client, named: str) -> str:
    """Return the id of the row of that name, or whose id begins so. Raises: InvalidInput."""
    there = client.cron_rows()
    ids = [one["id"] for one in there if one["name"] == named]
    ids = ids or [one["id"] for one in there if named and one["id"].startswith(named)]
    if len(ids) != 1:
        begin = "no row of yours has" if not ids else f"{len(ids)} rows of yours have"
        raise InvalidInput("--row", f"{begin} the name, or an id that begins with, {named!r}")
    return str(ids[0])


def agree(command: Command, body: Mapping[str, Any], *, yes: bool) -> None:
    """Show what is to be made, and ask unless `yes`, where a command has people agree.

    Raises:
        InvalidInput: nobody is there to be asked.
    """
    if command.agreement is None or yes:
        return
    for line in command.agreement.shown(body):
        output.message(line)
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "is needed where nobody can be asked")
    typer.confirm(command.agreement.question, abort=True, err=True)


def make(client: Client, plural: str, command: Command, body: Mapping[str, Any]) -> Result:
    """Make what was agreed to, and tell it as that command does."""
    return _done(command, COMMANDS[plural].calls(client).make(**body))


def asking(plural: str, command: Command, gives: Iterable[Given]) -> Callable[[Work], Work]:
    """Give a function with `**` these options of a kind's command, and the one to agree."""

    def declare(work: Work) -> Work:
        own = [one for one in parameters_of(work) if one.kind is not inspect.Parameter.VAR_KEYWORD]
        more = COMMANDS[plural].typed(command, gives)

        def run(**given: Any) -> Any:
            return work(**given)

        return cast("Work", with_parameters(work, run, [*own, *more, _YES]))

    return declare


def _done(command: Command, done: dict[str, Any]) -> Result:
    if command.summary is None:
        return Result(done, partial(output.data, done["id"]))
    if command.tells_id:
        return tables.made(command.summary(done), done, done["id"])
    return tables.done(command.summary(done), done)


COMMANDS: Final = {plural: KindCommands(kind) for plural, kind in kinds().items()}
GROUPS: Final = {plural: one.group() for plural, one in COMMANDS.items()}
"""By the name of each."""


def id_of(client: Client, plural: str, named: str | None) -> str | None:
    """Return the id of what has that name, or whose id begins so; None of none.

    Raises:
        NotReady, InvalidInput: there is no such thing, or more than one.
    """
    return None if named is None else str(COMMANDS[plural].find(client, named)["id"])
