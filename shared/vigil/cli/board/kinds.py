"""The commands of each kind of the board: made of what `vigil.board.kinds` declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Annotated, Any, Final, get_args, get_type_hints

import typer

from vigil.board.commands import Command, Given
from vigil.board.outside import BoardKind, kinds
from vigil.sdk.calls.kind import KindCalls
from vigil.sdk.client import Client
from vigil.texts.exact import exact

from .. import completion, exits, options, output, prefixes, tables
from ..registry import CommandLine, ListedGroup, keyword
from ..tables import Result

LOOKED_AT_MAX: Final = 500
"""Of each list, for one that is named by the beginning of its id."""
_NEEDED: Final = inspect.Parameter.empty
Why = Annotated[str, typer.Option("--why", help="For its history.")]


class KindCommands:
    """The group of one kind."""

    def __init__(self, kind: BoardKind[Any]) -> None:
        self._kind = kind
        self._said = kind.commands

    def group(self) -> CommandLine:
        """Return its commands: `list` and `show`, and those that it declares."""
        app = CommandLine(cls=ListedGroup, help=self._said.help)
        self._add(app, "list", self._said.list_text, self._list, self._choice())
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
        text = "Only those." + (lists.unchosen and f" Default: {lists.unchosen}.")
        option = typer.Option(f"--{lists.by}", help=text)
        return keyword("chosen", Annotated[lists.choices | None, option], default=None)

    def _id(self) -> inspect.Parameter:
        offer = completion.of_kind(self._kind.plural, self._said.words)
        argument = options.id_of(self._kind.called, f"vigil {self._kind.plural}", offer)
        return keyword("id_", Annotated[str, argument], default=_NEEDED)

    def _parameters(self, command: Command) -> list[inspect.Parameter]:
        is_new = command.does == "make"
        types = get_type_hints(self._kind.body_of(command)) if command.gives else {}
        given = [_parameter(one, types[one.field]) for one in command.gives]
        first = [] if is_new else [self._id()]
        agent = [keyword("agent", options.Agent, default="vigil")] if is_new else []
        why = [keyword("why", Why, default="")] if command.has_why and command.does != "end" else []
        return [*first, *given, *agent, *why]

    # ------------------------------------------------------------ work

    def _list(self, chosen: str | None) -> Result:
        said, plural = self._said, self._kind.plural
        found = self._calls(options.client()).listed(**{self._kind.lists.by: chosen})
        empty = (not chosen and said.empty_unchosen) or f"No {plural}."
        return tables.listing(plural, found, said.columns, empty=empty)

    def _show(self, id_: str) -> Result:
        found = self.find(options.client(), id_)
        return Result(found, partial(self._print, found))

    def _print(self, found: dict[str, Any]) -> None:
        said = self._said
        for name in said.texts_before:
            output.data(exact(found[name], indent=2))
        tables.fields(said.fields, found)
        for name in said.texts:
            if found.get(name):
                output.data(name)
                output.data(exact(found[name], indent=2))
        if said.texts:
            output.data("")
        for name, columns in said.parts.items():
            tables.table(columns, found[name])

    def _make(self, command: Command, **given: Any) -> Result:
        client = options.client()
        return _done(command, self._calls(client).make(**_body(client, command, given)))

    def _change(self, command: Command, id_: str, **given: Any) -> Result:
        client = options.client()
        found, calls = self.find(client, id_), self._calls(client)
        if command.only and found["status"] != command.only:
            words = f"{found[self._said.words]!r} is {found['status']}, not {command.only}"
            raise exits.NotReady(words)
        if command.does == "end":
            return _done(command, calls.end(found["id"], revision=found["revision"]))
        body = _body(client, command, given)
        if command.does == "split":
            made = calls.split(found["id"], revision=found["revision"], **body)
            return Result({self._kind.plural: made}, partial(_print_ids, made))
        return _done(command, calls.change(found["id"], revision=found["revision"], **body))

    def _calls(self, client: Client) -> KindCalls:
        return KindCalls(client, self._kind.plural)

    def find(self, client: Client, id_: str) -> dict[str, Any]:
        """Return what has that name, or whose id begins so. Raises: NotReady, InvalidInput."""
        calls, by = self._calls(client), self._kind.lists.by
        lists = (calls.listed(**{by: one}, limit=LOOKED_AT_MAX) for one in self._said.chosen)
        there: Iterator[dict[str, Any]] = chain.from_iterable(lists)
        if self._said.is_named:
            there = iter(known := list(there))
            named = prefixes.named(self._kind.noun, id_, known, client.me, field=self._said.words)
            if named is not None:
                return calls.get(named)
        return calls.get(prefixes.whole(self._kind.noun, id_, (one["id"] for one in there)))


def _parameter(given: Given, kind: Any) -> inspect.Parameter:
    """Return what is typed for a field; what isn't typed is left as it is."""
    kind = (str if _is_instant(kind) else kind) if given.kind is None else given.kind
    if not given.option:
        argument = Annotated[kind, typer.Argument(help=given.help)]
        is_needed = given.default is None
        return keyword(given.field, argument, default=_NEEDED if is_needed else given.default)
    option = typer.Option(given.option, help=given.help, metavar=given.metavar)
    if kind is bool:
        return keyword(given.field, Annotated[bool, option], default=False)
    return keyword(given.field, Annotated[kind | None, option], default=None)


def _is_instant(kind: Any) -> bool:
    return datetime in (kind, *get_args(kind))


def _body(client: Client, command: Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a body: what was typed, and what the command says by itself."""
    body = {**command.always, **given}
    for one in command.gives:
        value = body[one.field]
        if value is None or value == []:
            body[one.field] = None
        elif one.is_goal and not (value == "" and command.does == "change"):
            body[one.field] = id_of(client, "goals", value)
        elif one.read is not None:
            body[one.field] = one.read(value)
    return body


def _print_ids(made: list[dict[str, Any]]) -> None:
    for one in made:
        output.data(one["id"])


def _done(command: Command, done: dict[str, Any]) -> Result:
    if command.told is None:
        return Result(done, partial(output.data, done["id"]))
    return tables.done(command.told(done), done)


_ALL: Final = {plural: KindCommands(kind) for plural, kind in kinds().items()}
GROUPS: Final = {plural: one.group() for plural, one in _ALL.items()}
"""By the name of each."""


def id_of(client: Client, plural: str, named: str | None) -> str | None:
    """Return the id of what has that name, or whose id begins so; None of none.

    Raises:
        NotReady, InvalidInput: there is no such thing, or more than one.
    """
    return None if named is None else str(_ALL[plural].find(client, named)["id"])
