"""What a memory operation is: one module of `operations`, which is everything there is to it. Pure.

`OPERATION` in it names the struct that is asked over the bus and the one that answers. HTTP, MCP,
`vigil.Client` and a model each see a view of that struct. A module that is put there is an
operation; the memory service needs a handler for it (`services.memory.answers.HANDLERS`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from ..contracts.arguments import Arguments
from ..contracts.tools import Aim
from ..errors import InvalidInput
from ..registry import declared
from ..subjects import Scope
from . import operations as _folder
from .answer_text import AnswerText
from .questions import Question, Reply
from .view import Pick, Picks, View, picked, view
from .wire import Whose

STAMPED: Final = frozenset({"by", "provenance", "is_tainted", "only_trusted", "tokens", "counts"})
"""Fields that our own services fill in: a view has none of them, unless it picks it by name."""


def outside(question: type[Question]) -> dict[str, Pick]:
    """Return what the outside may give: all that isn't stamped."""
    return picked(*(name for name in question.__struct_fields__ if name not in STAMPED))


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where HTTP has an operation. A GET and a DELETE read the query, the others a body."""

    name: str
    """`operationId` of the OpenAPI document."""
    text: str
    """What it says there."""
    method: Literal["GET", "POST", "DELETE"]
    path: str
    """`{id}` in it is the field `id`."""
    status: int = 200
    errors: tuple[int, ...] = ()
    """But for 403, 422 and 503, and 413 of a body."""
    picks: Picks | None = None
    """None: every field that isn't stamped."""

    @property
    def has_body(self) -> bool:
        return self.method == "POST"


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """How an MCP client sees an operation."""

    name: str
    title: str
    text: str
    picks: Picks
    is_reading: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False


class Operation(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An operation on the memory of one scope."""

    name: str
    """In the subject: ``rpc.memory.{name}.{agent}.{owner}``."""
    question: type[Question]
    reply: type[Reply]
    is_reading: bool = False
    """It is answered from what is stored, and writes nothing."""
    check: Callable[[Any], None] | None = None
    """Refuses what fits the types and still can't be; raises InvalidInput."""
    shown: type[Any] | None = None
    """What the outside is answered; None: the reply as it is."""
    show: Callable[[Scope, Any], Any] | None = None
    """Makes `shown` of a reply, if that is more than to leave out and rename."""
    route: Route | None = None
    mcp: McpTool | None = None
    describe: Callable[[Any], AnswerText] | None = None
    """Makes the text for a model of a reply; None: its JSON."""

    @property
    def answer(self) -> type[Any]:
        """What the outside is answered."""
        return self.shown or self.reply

    def answer_of(self, scope: Scope, reply: Reply) -> Any:
        """Return a reply as the outside is told it. Raises: NotFound."""
        if self.show is not None:
            return self.show(scope, reply)
        if self.shown is None:
            return reply
        owned = {"userId": scope.owner, "agentId": scope.agent}
        found = {name: getattr(reply, name) for name in reply.__struct_fields__}
        return msgspec.convert(owned | found, self.shown, from_attributes=True)

    def in_words(self, reply: Reply) -> AnswerText:
        """Return a reply as a model is told it."""
        if self.describe is None:
            return AnswerText(content=msgspec.json.encode(reply).decode())
        return self.describe(reply)

    def checked(self, fields: Mapping[str, Any]) -> Question:
        """Return the question of these fields. Raises: InvalidInput."""
        question = self.question(**fields)
        if self.check is not None:
            self.check(question)
        return question


class ModelTool(msgspec.Struct, frozen=True, kw_only=True):
    """A memory tool of a model (SPEC M-8). All may be run twice: a save has its call's id as key.

    Nothing of it lets a model choose a source, an owner or whether to be trusted.
    """

    name: str
    view: View
    ask: Callable[..., Question]
    aims: Mapping[str, Aim] = {}
    """What its arguments are for; those that aren't named are content."""

    @property
    def arguments(self) -> type[Any]:
        return self.view.kind

    def question(self, given: msgspec.Struct, by: str) -> Question:
        """Return what a call with these arguments asks for."""
        return self.ask(by, **self.view.fields(given))


def tool(
    source: type[Question], picks: Picks, aims: Mapping[str, Aim] | None = None
) -> Callable[[Callable[..., Question]], ModelTool]:
    """Declare a function to be a tool of a model, as `@tool` of the executor does.

    Its name is the function's, its description the docstring. It is called with who asks and the
    fields of `source` that the call gives. Fields are shown without what they say of themselves:
    every word is paid for in every request.
    """

    def declare(ask: Callable[..., Question]) -> ModelTool:
        made = view(
            "".join(part.title() for part in ask.__name__.split("_")),
            source,
            picks,
            base=Arguments,
            text=ask.__doc__ or "",
            is_described=False,
        )
        return ModelTool(name=ask.__name__, view=made, ask=ask, aims=aims or {})

    return declare


@functools.cache
def operations() -> dict[str, Operation]:
    """Return every operation of a scope, by name."""
    return {one.name: one for one in declared(_folder.__name__, Operation)}


@functools.cache
def tools() -> dict[str, ModelTool]:
    """Return every memory tool of a model, by name."""
    return {one.name: one for one in declared(_folder.__name__, ModelTool)}


def forget_registered() -> None:
    """Look at the folder again: it changed."""
    for cached in (operations, tools):
        cached.cache_clear()


def operation_of(kind: type[Question]) -> Operation:
    """Return the operation that asks with a struct. Raises: InvalidInput, there is none."""
    for one in operations().values():
        if one.question is kind:
            return one
    raise InvalidInput("op", f"{kind.__name__} is not served")


@functools.cache
def http_view(operation: Operation) -> View:
    """Return what HTTP takes for an operation, whose memory it is about among it."""
    route = operation.route
    picks = outside(operation.question) if route is None or route.picks is None else route.picks
    name = f"{operation.question.__name__}Body"
    text = operation.question.__doc__ or ""
    return view(name, operation.question, picks, base=Whose, text=text)


@functools.cache
def mcp_view(operation: Operation) -> View:
    """Return the arguments of the MCP tool of an operation that has one."""
    if operation.mcp is None:
        raise InvalidInput("op", f"{operation.name} is no tool of MCP")
    name = f"{operation.question.__name__}Arguments"
    return view(name, operation.question, operation.mcp.picks, base=Arguments, text="")
