"""The table of the console's pages, and how a request for one is answered.

Each is a form of HTML that a browser sends and a page that it shows: nothing needs a script. A
request that changes something has to come from a page of ours; then the page asks the API for it as
whoever is signed in (:mod:`.inner_api`), and the answer leads to a page that shows what holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.routing import Route

from vigil.board.kinds.approval import ApprovalView
from vigil.reading.read_once import read_once

from ..http.browser import HEADERS, PATH, is_own_form, policy_of
from ..http.errors import EXPECTED
from ..http.problem import Problem, of_error, title_of
from ..sign_ins.endpoint import BACK
from ..state.edge import Edge
from . import app, appearance, decision, entrance, server_sign_in
from .changes import ChangeStream, InnerStream
from .forms import read_form
from .pages import (
    browsers,
    cost,
    deliveries,
    find,
    graph,
    health,
    inbox,
    memories,
    memory,
    settings,
    switch,
    today,
    tools,
    trust,
    why,
)
from .pages.about import agent, agents, models, servers, welcome
from .pages.accounts import calendars, contacts, mail, networks, notifications
from .pages.board import autonomy, goal, goals, grants, preferences, row, task, tasks, timetable
from .pages.sessions import (
    conversation,
    conversations,
    prompt,
    prompts,
    record,
    timeline,
)
from .second_thoughts import (
    DECIDED,
    SURE,
    UNDO,
    Confirmation,
    decided_of,
    undo_of,
    with_undo,
)
from .visit import ConsolePage, Visit

PAGES: Final = (
    ConsolePage("", "Today", today, short="Today"),
    ConsolePage("/inbox", "Inbox", inbox, short="Inbox"),
    ConsolePage("/conversations", "Conversations", conversations, short="Talk"),
    ConsolePage("/tasks", "Tasks", tasks, begins=True, short="Tasks"),
    ConsolePage("/goals", "Goals", goals),
    ConsolePage("/timetable", "Timetable", timetable, short="Times"),
    ConsolePage("/autonomy", "Autonomy", autonomy),
    ConsolePage("/memories", "Memory", memories, begins=True),
    ConsolePage("/preferences", "Preferences", preferences),
    ConsolePage("/prompts", "Prompts", prompts),
    ConsolePage("/tools", "Tools", tools),
    ConsolePage("/grants", "Grants", grants),
    ConsolePage("/trust", "Trust", trust),
    ConsolePage("/mail", "Accounts", mail, begins=True),
    ConsolePage("/agents", "Agents", agents, begins=True),
    ConsolePage("/models", "Models", models),
    ConsolePage("/servers", "MCP servers", servers),
    ConsolePage("/deliveries", "Deliveries", deliveries),
    ConsolePage("/cost", "Cost", cost),
    ConsolePage("/health", "Health", health),
    ConsolePage("/why", "Why", why, begins=True),
    ConsolePage("/settings", "Settings", settings),
    ConsolePage("/browsers", "Browsers", browsers),
    ConsolePage("/welcome", "First steps", welcome),
)
BELOW: Final = (
    ConsolePage("/inbox/{id}", "Inbox", inbox),
    ConsolePage("/conversations/{key}", "Conversations", conversation),
    ConsolePage("/conversations/{key}/timeline", "Conversations", timeline),
    ConsolePage("/conversations/{key}/records/{seq}", "Conversations", record),
    ConsolePage("/tasks/{id}", "Tasks", task),
    ConsolePage("/goals/{id}", "Goals", goal),
    ConsolePage("/timetable/{id}", "Timetable", row),
    ConsolePage("/memories/graph", "Memory", graph),
    ConsolePage("/memories/{id}", "Memory", memory),
    ConsolePage("/agents/{agent}", "Agents", agent),
    ConsolePage("/prompts/{key}/{seq}", "Prompts", prompt),
)
"""Pages of one thing, which others lead to."""
BESIDE: Final = (
    ConsolePage("/networks", "Accounts", networks),
    ConsolePage("/find", "Find", find),
    ConsolePage("/contacts", "Accounts", contacts),
    ConsolePage("/calendars", "Accounts", calendars),
    ConsolePage("/notifications", "Accounts", notifications),
)
"""Pages that another, or the field at the top, leads to."""

Answering = Callable[[Request], Awaitable[Response]]
Asking = Callable[[Visit], Awaitable[Confirmation | None]]


class _Served:
    """An ASGI application around what answers for one path."""

    def __init__(self, path: str, answer: Answering, console: str) -> None:
        self.path = path
        self._answer = answer
        self._console = console

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        try:
            if not is_own_form(request.method, request.headers):
                raise Problem(403, "this has to come from a page of the console itself")
            answer = await self._answer(request)
        except EXPECTED as error:
            answer = _refusal(self._console, of_error(error))
        answer.headers.update(HEADERS)
        answer.headers.setdefault("content-security-policy", policy_of())
        await answer(scope, receive, send)


def _refusal(console: str, problem: Problem | None, visit: Visit | None = None) -> Response:
    """Say why something isn't done. What was written for it isn't lost with the page that it was
    written on."""
    if problem is None:  # whoever asked is gone
        return Response(status_code=400)
    context: dict[str, Any] = {"title": title_of(problem.status), "detail": problem.detail}
    if visit is not None:
        context |= {"written": visit.written, "back": visit.address}
    answer = appearance.html(console, "refused.html", context, problem.status)
    answer.headers.update(problem.headers)
    return answer


class Console:
    """The console of one gateway process."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._console = edge.console

    def routes(self) -> list[Route]:
        """Return what is served."""
        pages = [
            self._route(one.path, self._of(one), one.act is not None)
            for one in (*PAGES, *BESIDE, *BELOW)
        ]
        return [
            *pages,
            Route(f"{PATH}/", self._home, methods=["GET"]),
            *(self._route(path, self._always(answer), False) for path, answer in app.FILES),
            self._route("/enter", self._enter, True),
            self._route("/leave", self._leave, True),
            self._route(BACK, self._come_back, False),
            self._route("/pause", self._switch, True),
            self._route("/decide", self._decide, True),
            self._route("/live", self._live, False),
            self._route("/live/{key}", self._tokens, False),
            self._route("/files/{hash}", self._file, False),
            self._route("/static/{version}/{name}", _static, False),
        ]

    def _of(self, page: ConsolePage) -> Answering:
        async def answer(request: Request) -> Response:
            visit = await self._visit(request)
            if visit is None:
                return entrance.signed_out(self._edge)
            told: dict[str, Any] = {}
            if request.method == "POST" and page.act is not None:
                if question := await _question(visit, page.ask):
                    return question
                try:
                    outcome = await page.act(visit)
                except Problem as problem:
                    return _refusal(self._console, problem, visit)
                if isinstance(outcome, str):
                    return self._go(outcome)
                told = outcome
            seen = await self._edge.feed.newest()  # before anything is read
            await visit.begin()
            if page is PAGES[0] and not visit.is_refreshed and await welcome.is_due(visit):
                return self._go("/welcome")
            visit.pages = PAGES
            async with read_once():
                found, frame = await asyncio.gather(
                    page.show(visit), self._frame(visit, page, seen)
                )
            return appearance.html(self._console, page.template, frame | found | told)

        return answer

    async def _frame(self, visit: Visit, page: ConsolePage, seen: int) -> dict[str, Any]:
        """Return what every page shows around its own; after the signal `seen` it looks again."""
        return {
            "seen": seen,
            "pages": PAGES,
            "page": page,
            "path": visit.path,
            "address": visit.address,
            "nonce": secrets.token_urlsafe(16),
            "reader": visit.reader,
            "browser": visit.browser,
            "person": visit.person,
            "paused": self._edge.switches.paused,
            "zone": visit.zone,
            "now": visit.now,
            "undo": undo_of(visit.query.get(UNDO, "")),
            "waits": await self._waits(visit),
            "decided": await _decided(visit),
        }

    async def _waits(self, visit: Visit) -> int:
        """Return how many requests wait for the reader."""
        return sum(visit.may_decide(one.session_key) for one in await visit.open_requests())

    async def _visit(self, request: Request) -> Visit | None:
        found = await entrance.reader_of(self._edge, request)
        if found is None:
            return None
        id_, reader = found
        form = await read_form(request, self._edge.config)
        return Visit(self._edge, request, reader, id_, form)

    async def _enter(self, request: Request) -> Response:
        if request.method != "POST":
            return await entrance.offer(self._edge, request)
        form = await read_form(request, self._edge.config)
        return await entrance.enter(self._edge, request, form.fields.get("code", ""))

    async def _come_back(self, request: Request) -> Response:
        return await server_sign_in.come_back(self._edge, request)

    async def _leave(self, request: Request) -> Response:
        visit = await self._visit(request)
        if visit is None or request.method != "POST":
            return self._go("")
        return await entrance.leave(self._edge, request, visit.browser)

    async def _live(self, request: Request) -> Response:
        visit = await self._visit(request)
        if visit is None:
            return entrance.signed_out(self._edge)
        await self._edge.browsers.follow()
        after = request.headers.get("last-event-id") or visit.query.get("after")
        return ChangeStream(visit, after)

    async def _tokens(self, request: Request) -> Response:
        visit = await self._visit(request)
        if visit is None:
            return entrance.signed_out(self._edge)
        await self._edge.browsers.follow()
        return InnerStream(visit, f"/api/sessions/{visit.named('key')}/tokens")

    async def _file(self, request: Request) -> Response:
        visit = await self._visit(request)
        if visit is None:
            return entrance.signed_out(self._edge)
        return await visit.api.download(f"/api/attachments/{visit.named('hash')}")

    async def _decide(self, request: Request) -> Response:
        try:
            visit = await self._visit(request)
        except EXPECTED as error:  # to a script, which reads no page
            if problem := of_error(error):
                return decision.refused(problem)
            raise
        if visit is None or request.method != "POST":
            return decision.nobody() if visit is None else self._go("/inbox")
        return await decision.decide(visit)

    async def _switch(self, request: Request) -> Response:
        visit = await self._visit(request)
        if visit is None:
            return entrance.signed_out(self._edge)
        undo = ""
        if request.method == "POST":
            if question := await _question(visit, switch.ask):
                return question
            undo = await switch.act(visit)
        return RedirectResponse(with_undo(self._console + visit.back, undo), 303)

    def _route(self, path: str, answer: Answering, takes_forms: bool) -> Route:
        methods = ["GET", "POST"] if takes_forms else ["GET"]
        path = PATH + path
        return Route(path, _Served(path, answer, self._console), methods=methods)

    def _always(self, answer: Callable[[str], Response]) -> Answering:
        async def answered(_: Request) -> Response:
            return answer(self._console)

        return answered

    def _go(self, path: str) -> Response:
        return RedirectResponse(self._console + path, 303, {"cache-control": "no-store"})

    async def _home(self, request: Request) -> Response:
        """Lead from what is typed by hand."""
        return self._go("")


async def _question(visit: Visit, ask: Asking | None) -> Response | None:
    """Return what is asked before a form does what can't be undone; None: it is to be done."""
    question = None if ask is None or SURE in visit.form else await ask(visit)
    if question is None:
        return None
    console = visit.edge.console
    here = visit.path if visit.path != f"{console}/pause" else console
    back = console + visit.back if visit.back else here
    context = {"question": question, "fields": visit.form, "path": visit.address, "back": back}
    return appearance.html(console, "question.html", context)


async def _decided(visit: Visit) -> ApprovalView | None:
    """Return the request that a form decided last, as the board has it; None: there is none."""
    id_ = decided_of(visit.query.get(DECIDED, ""))
    with contextlib.suppress(Problem):
        return await visit.api.get(ApprovalView, f"/api/approvals/{id_}") if id_ else None
    return None


async def _static(request: Request) -> Response:
    may_pack = "gzip" in request.headers.get("accept-encoding", "")
    return appearance.static(
        request.path_params["name"], request.path_params["version"], may_pack=may_pack
    )
