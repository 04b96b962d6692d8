"""One look at the console by one person: who, where, what their form says, and the API as them."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import datetime
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

import msgspec
from fastapi import Request

from vigil.board.kinds.approval import ApprovalList, ApprovalView
from vigil.settings.sections import LANGUAGE
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, SessionKey
from vigil.teams import DEFAULT_AGENT, may_act
from vigil.zones.database import zone_named

from ..http.browser import PATH, is_of_console
from ..http.problem import Problem
from ..state.edge import Edge
from ..work.person import PersonView
from .forms import Form
from .inner_api import InnerApi
from .second_thoughts import Confirmation
from .shapes.talk.shelf import called_by_kind
from .text import thread_of

TITLED_MAX: Final = 50
"""Sessions of a page that are looked up by what they are called."""
OPEN_MAX: Final = 500
"""Requests that are counted."""
DIGITS_MAX: Final = 16
WRITTEN: Final = ("title", "description", "prompt", "text", "instead", "value", "input")
"""Fields of forms that hold it; none of them holds a key."""
Moves = Mapping[Any, Collection[Any]]


class Owned(Protocol):
    """What is somebody's, with an agent."""

    @property
    def owner(self) -> str: ...
    @property
    def agent_id(self) -> str: ...


Thing = TypeVar("Thing", bound=Owned)


class Movable(msgspec.Struct, frozen=True):
    """A thing of a board, as far as it is moved."""

    status: str


def origin_of(request: Request) -> str:
    """Return how a reader reaches this gateway: as their browser says it where a proxy with TLS is
    before us, of the Host that the request is for."""
    said = request.headers.get("origin", "")
    if said.partition("://")[2] == request.url.netloc:
        return said
    return f"{request.url.scheme}://{request.url.netloc}"


class Visit:
    """What a page gets to know. What it shows or changes, it asks of `api`."""

    def __init__(
        self, edge: Edge, request: Request, reader: Principal, browser: str, form: Form
    ) -> None:
        self.edge = edge
        self.reader = reader
        self.browser = browser
        """The id of the reader's browser."""
        self.form = form.fields
        self.files = form.files
        self.query: Mapping[str, str] = request.query_params
        self.path: str = edge.public.root + request.url.path
        """As the browser has it."""
        self.is_refreshed = request.headers.get("hx-request") == "true"
        """Whether a page that is open looks again by itself, perhaps while nobody sees it."""
        self.address = f"{self.path}?{request.url.query}" if request.url.query else self.path
        self.language = language_of(request.headers.get("accept-language", ""))
        """What the browser likes best, as a tag; empty: it doesn't say."""
        self.gateway = edge.public.url or origin_of(request)
        """How people reach this gateway: as it's set, or by a Host that it is known under."""
        self.api = InnerApi(request.app, request.scope, reader)
        self.now: datetime = edge.clock.now()
        self.person: PersonView
        self.pages: tuple[ConsolePage, ...] = ()
        """Those that the navigation leads to."""
        self._open_requests: asyncio.Future[ApprovalList] | None = None
        self._named: Mapping[str, str] = request.path_params

    async def begin(self) -> None:
        """Read what holds for the reader. Raises: Problem."""
        self.person = await self.api.get(PersonView, "/api/person")

    async def last_here(self) -> datetime | None:
        """Return when the reader looked at Today before this visit; None: this is their first."""
        return await self.edge.browsers.note_visit(self.browser, self.now)

    @property
    def back(self) -> str:
        """Where a form says that it was: a path below the console's; empty: it doesn't say so, or
        not of the console."""
        place = self.form.get("back", "").removeprefix(self.edge.public.root)
        return place.removeprefix(PATH) if is_of_console(place.partition("?")[0]) else ""

    @property
    def written(self) -> tuple[str, ...]:
        """What somebody wrote into the form in words of their own, and would have to write anew."""
        return tuple(text for name in WRITTEN if (text := self.form.get(name, "").strip()))

    async def open_requests(self) -> tuple[ApprovalView, ...]:
        """Return what waits for a decision, of whatever the reader may see. Raises: Problem."""
        if self._open_requests is None:  # by the page and by its frame, at once
            self._open_requests = asyncio.ensure_future(
                self.api.get(ApprovalList, "/api/approvals", limit=OPEN_MAX)
            )
        return (await self._open_requests).approvals

    @property
    def home(self) -> SessionKey:
        """The conversation in which the reader is told what nobody asked for."""
        return SessionKey(self.reader.user, DEFAULT_AGENT, self.person.home_thread)

    @property
    def zone(self) -> ZoneInfo:
        return zone_named(self.person.timezone)

    async def titles(self, keys: Iterable[str]) -> dict[str, str]:
        """Return what sessions are called, by their keys: conversations as they are in the reader's
        list, others by what they are for."""
        called = {key: called_by_kind(key, str(self.home)) for key in keys}
        asked = [key for key, name in called.items() if not name][:TITLED_MAX]
        found = dict(zip(asked, await asyncio.gather(*map(self._title, asked)), strict=True))
        return {key: name or found.get(key) or thread_of(key) for key, name in called.items()}

    async def _title(self, key: str) -> str:
        with contextlib.suppress(Problem):
            found = await self.api.send("PATCH", f"/api/sessions/{key}", {})
            return str(found["title"])
        return ""

    def named(self, name: str) -> str:
        """Return what the page's path names, as one segment of a path of the API."""
        return segment_of(self._named[name])

    def is_named(self, name: str) -> bool:
        """Return whether the page's path names such a thing."""
        return name in self._named

    def wanted(self, name: str) -> str:
        """Return a field of the form. Raises: Problem, 422: it's missing."""
        if name not in self.form:
            raise Problem(422, f"{name} is required", field=name)
        return self.form[name]

    def number(self, name: str) -> int:
        """Return a field of the form that is a whole number. Raises: Problem, 422."""
        text = self.wanted(name)
        if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX):
            raise Problem(422, f"{name} must be a whole number", field=name)
        return int(text)

    async def move(self, board: str, id_: str) -> str:
        """Move a task or a goal of that board where the form says; return what undoes it.

        Raises:
            Problem: 412, it was changed since.
        """
        status, revision = self.wanted("status"), self.number("revision")
        path = f"/api/{board}/{id_}"
        before = await self.api.get(Movable, path)
        made = await self.api.send("PATCH", path, {"status": status}, revision=revision)
        is_undoable = before.status in made["moves"]
        return f"{board}/{id_}/{before.status}/{made['revision']}" if is_undoable else ""

    async def ask_to_move(self, board: str, id_: str, moves: Moves) -> Confirmation | None:
        """Return what to ask before a move that can't be undone by hand; None: nothing.

        Args:
            moves: from each status to those that a person may move it to.
        """
        before = (await self.api.get(Movable, f"/api/{board}/{id_}")).status
        to = self.wanted("status")
        if before in moves.get(to, ()) or to not in moves:
            return None
        text = f"By hand it can't be moved back to {before.replace('_', ' ')}."
        where = to.replace("_", " ")
        return Confirmation(title=f"Move it to {where}?", text=text, yes=f"Move it to {where}")

    def may_decide(self, session_key: str) -> bool:
        """Return whether what a session asks is for the reader to decide, and not for another."""
        return self.is_own(SessionKey.parse(session_key).scope)

    def is_own(self, whose: Scope) -> bool:
        """Return whether that is the reader's or their team's: an admin sees everybody's."""
        return may_act(self.reader.user, whose.owner, whose.agent, self.reader.teams)

    def own_first(self, found: Iterable[Thing]) -> list[Thing]:
        """Return things in their order, but the reader's own before those of others."""
        return sorted(found, key=lambda one: not self.is_own(Scope(one.agent_id, one.owner)))


def segment_of(text: str) -> str:
    """Return `text` if it may be a segment of a path of the API. Raises: Problem, 404.

    >>> segment_of("ann:vigil:t1")
    'ann:vigil:t1'
    """
    if "/" in text or not text.isprintable() or text in ("", ".", ".."):
        raise Problem(404, "there is no such page")
    return text


def language_of(header: str) -> str:
    """Return the first language of an `Accept-Language`, if it's a plain tag.

    >>> language_of("de-AT,de;q=0.9,en;q=0.8"), language_of("*"), language_of("<b>")
    ('de-AT', '', '')
    """
    first = header.partition(",")[0].partition(";")[0].strip()
    return first if re.fullmatch(LANGUAGE, first) else ""


class ConsolePage:
    """A row of the table of pages.

    Args:
        path: below the console's own.
        module: has `show`, which returns what the template of its name is filled with, and `act`
            if it has forms, which does what one says and returns where to go on; or what the page
            itself shows once, beside all else. `ask`, if something of it can't be undone, returns
            the question before that.
        begins: whether a group of the navigation begins with it.
        short: what it's called in the bar of a phone; empty: there it's among more.
    """

    def __init__(
        self, path: str, title: str, module: ModuleType, *, begins: bool = False, short: str = ""
    ) -> None:
        self.path = path
        self.title = title
        self.short = short
        self.begins = begins
        self.template = f"{module.__name__.rpartition('.')[2]}.html"
        self.show: Callable[[Visit], Awaitable[dict[str, Any]]] = module.show
        self.act: Callable[[Visit], Awaitable[str | dict[str, Any]]] | None
        self.act = getattr(module, "act", None)
        self.ask: Callable[[Visit], Awaitable[Confirmation | None]] | None
        self.ask = getattr(module, "ask", None)
