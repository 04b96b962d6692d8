"""What is served of each kind of the board: a row for each operation that it declares."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response

from vigil.board.kind import BoardRefusal
from vigil.board.mirrored import MirroredKind, OrderOperation
from vigil.board.outside import BoardKind, ListForm, ServedKind, served_kinds
from vigil.fields.schema import MAYBE_ID
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared, User, body_of, id_of, query_as
from ..endpoint import Endpoint
from ..http.problem import Problem
from ..http.wire import KEY_SCHEMA, Accepted
from ..preconditions import Expected
from ..sessions.messages import parent_of
from ..state.edge import Edge
from ..timetable.slots import SlotView
from ..work.skills import SkillList
from . import bulletins
from .approval_request import ApprovalRequest
from .grant_request import GrantRequest
from .job_request import JobRequest, list_skills
from .request import KindRequest
from .row_request import RowRequest, run_row

LIST_ERRORS: Final = (403, 422, 503)
READ_ERRORS: Final = (404, 422, 503)
MAKE_ERRORS: Final = (403, 413, 422, 503)
CHANGE_ERRORS: Final = (403, 404, 409, 412, 413, 422, 503)
ORDER_ERRORS: Final = (403, 404, 409, 413, 422, 503)
END_ERRORS: Final = (404, 409, 412, 422, 503)
RUN_ERRORS: Final = (403, 404, 409, 422, 503)
REQUESTS: Final[Mapping[str, Any]] = {
    "rows": RowRequest,
    "grants": GrantRequest,
    "jobs": JobRequest,
    "approvals": ApprovalRequest,
}
"""Of kinds of which more is read, or that are stored by a way of their own; and of all that
sessions decide."""
Handler = Callable[..., Awaitable[Response]]


def endpoints() -> Iterator[Endpoint]:
    """Yield what is served of all kinds, and of bulletins, which nobody changes by hand."""
    listing: dict[int, type | None] = {200: bulletins.BulletinListing}
    yield Endpoint("GET", "/api/bulletin", bulletins.list_bulletins, listing, LIST_ERRORS)
    yield Endpoint("POST", "/api/cron/{id}/runs", run_row, {202: SlotView}, RUN_ERRORS)
    yield Endpoint("GET", "/api/skills", list_skills, {200: SkillList})
    for kind in served_kinds():
        if isinstance(kind, MirroredKind):
            yield from _endpoints_of_mirrored(kind)
        elif isinstance(kind, BoardKind):
            yield from _endpoints_of(kind)


def _endpoints_of(kind: BoardKind[Any]) -> Iterator[Endpoint]:
    """Yield what there is of a kind, in the order of its life."""
    path, one, noun = kind.path, f"{kind.path}/{{id}}", kind.noun
    answer: dict[int, type | None] = {200: kind.detail or kind.view}
    id_: Any = Annotated[str, Depends(id_of(kind.called))]

    def served(name: str, text: str, work: Handler, **parameters: Any) -> Handler:
        return _handler(kind, name, text, work, parameters)

    lists = kind.lists
    handler = served(f"list_{kind.plural}", lists.text, KindRequest.list, **_asked(lists))
    yield Endpoint("GET", path, handler, {200: lists.answer}, LIST_ERRORS)
    if (makes := kind.makes) is not None:
        handler = served(
            f"make_{noun}",
            makes.text,
            partial(KindRequest.make, makes=makes),
            wanted=_body(makes.body, makes.other_names),
        )
        made = {201: answer[200]} | (answer if makes.is_new else {})
        yield Endpoint("POST", path, handler, made, (*makes.errors, *MAKE_ERRORS), makes.body)
    text = f"Show {kind.called}{' with its history' if kind.state else ''}"
    text = kind.show_text or f"{text}; its ETag is its revision."
    handler = served(f"get_{noun}", text, KindRequest.get, id_=id_)
    yield Endpoint("GET", one, handler, answer, READ_ERRORS)
    of_one: dict[str, Any] = {"id_": id_, "expected": Expected}
    if (changes := kind.changes) is not None:
        name = changes.name or f"change_{noun}"
        of_one["wanted"] = _body(changes.body, changes.other_names)
        handler = served(name, changes.text, partial(KindRequest.change, changes=changes), **of_one)
        yield Endpoint("PATCH", one, handler, answer, CHANGE_ERRORS, changes.body)
    if (ends := kind.ends) is not None:
        handler = served(
            ends.name, ends.text, partial(KindRequest.end, ends=ends), id_=id_, expected=Expected
        )
        yield Endpoint("DELETE", one, handler, answer, END_ERRORS)
    if (splits := kind.splits) is not None:
        of_one["wanted"] = _body(splits.body)
        handler = served(
            splits.name, splits.text, partial(KindRequest.split, splits=splits), **of_one
        )
        parts: dict[int, type | None] = {201: lists.answer}
        yield Endpoint("POST", f"{one}/parts", handler, parts, CHANGE_ERRORS, splits.body)


def _endpoints_of_mirrored(kind: MirroredKind[Any]) -> Iterator[Endpoint]:
    """Yield what there is of a kind that sessions decide: reading it, and orders to them."""
    path, one, lists, request = kind.path, f"{kind.path}/{{id}}", kind.lists, REQUESTS[kind.plural]
    id_: Any = Annotated[str, Depends(id_of(kind.called, kind.short_name))]
    served = partial(_handler, kind)

    def ordered(order: OrderOperation, work: Handler, **more: Any) -> Handler:
        wanted = {"wanted": _body(order.body), "parent": Annotated[str | None, Depends(_parent)]}
        return served(order.name, order.text, work, more | wanted)

    if (makes := kind.makes) is not None:
        handler = ordered(makes, request.make)
        yield Endpoint("POST", path, handler, {202: makes.answer}, MAKE_ERRORS, makes.body)
    asked: dict[str, Any] = (
        _asked(lists, kind.session_text) if kind.query is None else {"wanted": query_as(kind.query)}
    )
    handler = served(f"list_{kind.plural}", lists.text, request.list, asked)
    answer: dict[int, type | None] = {200: lists.answer}
    yield Endpoint("GET", path, handler, answer, LIST_ERRORS, query=kind.query)
    handler = served(f"get_{kind.noun}", kind.show_text, request.get, {"id_": id_})
    yield Endpoint("GET", one, handler, {200: kind.detail or kind.view}, READ_ERRORS)
    handler = ordered(kind.changes, request.change, id_=id_)
    yield Endpoint("PATCH", one, handler, {202: Accepted}, ORDER_ERRORS, kind.changes.body)


def _asked(lists: ListForm, session_text: str = "") -> dict[str, Any]:
    """Return the parameters of a list, in their order.

    Args:
        session_text: what is said of one that names a session; empty: there is none.
    """
    said = "; ".join(
        filter(None, ("Only those", lists.said, lists.unchosen and f"absent: {lists.unchosen}"))
    )
    choices: Any = lists.choices | None if lists.default is None else lists.choices
    is_flag = choices is bool
    choice = Annotated[choices, Query(description=lists.said if is_flag else said)]
    asked: dict[str, Any] = {lists.by: (choice, lists.default), "user": (User, None)}
    if is_flag:
        asked = dict(reversed(asked.items()))
    if session_text:
        said_key = Query(description=session_text, json_schema_extra=KEY_SCHEMA)
        asked["session"] = (Annotated[str | None, said_key], None)
    if lists.limit is not None:
        asked["limit"] = (Annotated[int, Query(ge=1, le=lists.limit_max)], lists.limit)
        said_after = Query(description="Continue after this id", json_schema_extra=MAYBE_ID)
        asked["after"] = (Annotated[str, said_after], "")
    return asked


async def _parent(request: Request) -> str | None:
    return parent_of(request.scope)


def _body(kind: Any, other_names: Mapping[str, str] | None = None) -> Any:
    return Annotated[kind, Depends(body_of(kind, other_names))]


def _handler(
    kind: ServedKind, name: str, text: str, work: Handler, parameters: dict[str, Any]
) -> Handler:
    """Return what answers by a method of its request, with the parameters that FastAPI reads.

    Args:
        parameters: the type of each, or that and its default.
    """

    async def answer(edge: Edge, caller: Principal, **given: Any) -> Response:
        try:
            return await work(REQUESTS.get(kind.plural, KindRequest)(kind, edge, caller), **given)
        except BoardRefusal as error:
            status = 409 if error.is_conflict else 422
            raise Problem(status, str(error), field=error.field) from None

    shown = []
    for parameter, wanted in {"edge": Shared, "caller": Caller, **parameters}.items():
        annotation, default = wanted if isinstance(wanted, tuple) else (wanted, _NEEDED)
        keyword = inspect.Parameter.KEYWORD_ONLY
        shown.append(inspect.Parameter(parameter, keyword, default=default, annotation=annotation))
    answer.__name__, answer.__doc__ = name, text
    answer.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return answer


_NEEDED: Final = inspect.Parameter.empty
