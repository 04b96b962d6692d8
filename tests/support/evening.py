"""An evening that nobody watches, as its person sees it over HTTP (LOOPS L2 to L4).

Three questions are looked up side by side, and what was found is saved. Of two tasks that it led to
one is left as it is and the other let go on; there a standing grant holds for one command, and
another one is asked for at home, where the person says yes in the morning.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2

from services.cortex.core.tools.search import FIND_TOOLS
from services.cortex.core.work import spoken
from tests.support.messages_replies import Reply, said, says
from tests.support.obedient import call, has_words, orders_in, texts_of
from tests.support.pauses import pauses

QUESTIONS: Final = 3
SECTIONS: Final[dict[str, dict[str, Any]]] = {
    "model": {"main": "claude-test"},
    "budget": {"daily_tokens": 10**12},
    "autonomy": {"enabled": True, "cooldown_ms": 0, "max_consecutive": 1000},
}


def order(tool: str, **given: Any) -> str:
    return f"do: {tool} {json.dumps(given)}"


def attend(body: dict[str, Any]) -> Reply:
    """Answer as a model that does what the newest message, and what came of it, tell it to."""
    messages = said(body)
    asked_at = max(i for i, message in enumerate(messages) if has_words(message))
    told = [text for message in messages[asked_at:] for text in texts_of(message)]
    offered = {tool["name"] for tool in body.get("tools", ())}
    done = {
        (block["name"], json.dumps(block["input"], sort_keys=True))
        for message in messages[asked_at:]
        for block in message["content"]
        if block["type"] == "tool_use"
    }
    orders = dict.fromkeys((tool, given) for _, tool, given in orders_in("\n".join(told)))
    missing = ", ".join(dict.fromkeys(tool for tool, _ in orders if tool not in offered))
    search = json.dumps({"query": missing})
    if missing and FIND_TOOLS in offered and (FIND_TOOLS, search) not in done:
        return call(body, [(FIND_TOOLS, json.loads(search))])
    wanted = [one for one in orders if one[0] in offered and one not in done]
    if wanted:
        return call(body, [(tool, json.loads(given)) for tool, given in wanted])
    return says(f"That is all. {told[-1] if len(told) > 1 else ''}", chunk=400)


class Web:
    """A search endpoint and the pages that it finds. `has_pages`: else it tells all by itself."""

    def __init__(self, *, has_pages: bool) -> None:
        self._has_pages = has_pages
        self._server: asyncio.Server | None = None
        self.read: list[str] = []
        """The pages that somebody read."""

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            kind, body = self._answer(urlsplit(head.split(" ")[1]))
            lines = ["HTTP/1.1 200 OK", f"content-type: {kind}", f"content-length: {len(body)}",
                     "connection: close", "", ""]  # fmt: skip
            writer.write("\r\n".join(lines).encode() + body)
            await writer.drain()
        writer.close()

    def _answer(self, target: Any) -> tuple[str, bytes]:
        if target.path != "/search":
            self.read.append(name := target.path.rpartition("/")[2])
            return "text/plain; charset=utf-8", finding(name).encode()
        (name,) = parse_qs(target.query)["q"]
        url = f"{self.url}/page/{name}"
        content = order("http_get", url=url) if self._has_pages else finding(name)
        results = [{"url": url, "title": f"On {name}", "content": content}]
        return "application/json", json.dumps({"query": name, "results": results}).encode()


@contextlib.asynccontextmanager
async def running_web(*, has_pages: bool) -> AsyncIterator[Web]:
    web = Web(has_pages=has_pages)
    await web.start()
    try:
        yield web
    finally:
        await web.close()


def command(what: str, name: str) -> str:
    """Return a command that leaves a file for each time it runs."""
    return f"mktemp -p . {what}-{name}-XXXXXXXX"


def finding(name: str) -> str:
    """Return what is to be found of a question: what to keep and, of some, what to do."""
    found = order("memory_save", content=f"finding {name}")
    match name.rpartition("-")[2]:
        case "0":
            found += " " + order("task_create", title=f"wait {name}", description="nothing")
        case "1":
            does = " ".join(
                (order("shell", command=command("granted", "x")),
                 order("shell", command=command("asked", name)))
            )  # fmt: skip
            found += " " + order("task_create", title=f"run {name}", description=does)
        case "night":
            for what in (command("granted", "x"), command("asked", name)):
                found += " " + order("shell", command=what)
    return found


class Evening:
    """One evening of a person's; `name` sets it apart from others."""

    def __init__(self, http: httpx2.AsyncClient, user: str, name: str, patience_s: float) -> None:
        self._http = http
        self._patience_s = patience_s
        self.name = name
        self.key = f"{user}:vigil:{name}"
        self.home = f"{user}:vigil:main"
        self.begun: dict[str, Any] = {}
        """The task that was let go on."""
        self.request: dict[str, Any] = {}

    # ------------------------------------------------------------ over HTTP, whoever is away

    async def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Ask until there is an answer that isn't about somebody being away."""
        pause_s = pauses()
        async with asyncio.timeout(self._patience_s):
            while True:
                # anyio looks at a socket that uvloop has closed already: killed after the accept
                with contextlib.suppress(httpx2.TransportError, AttributeError):
                    answer = await self._http.request(method, path, **options)
                    if answer.status_code < 500 and answer.status_code != 429:
                        return answer
                await asyncio.sleep(next(pause_s))

    async def find(self, path: str, name: str, is_it: Callable[[Any], bool]) -> dict[str, Any]:
        """Wait until a list has what is looked for."""
        there = await self.until(path, lambda answer: any(map(is_it, answer[name])))
        return next(one for one in there[name] if is_it(one))

    async def until(self, path: str, is_so: Callable[[Any], bool]) -> dict[str, Any]:
        """Wait until what is at a path is so."""
        pause_s, seen = pauses(), ""
        try:
            async with asyncio.timeout(self._patience_s):
                while True:
                    answer = await self.ask("GET", path)
                    seen = answer.text
                    if answer.status_code == 200 and is_so(found := answer.json()):
                        return dict(found)
                    await asyncio.sleep(next(pause_s))
        except TimeoutError:
            raise AssertionError(f"{self.name}: {path} is {seen[-2000:]}") from None

    async def say(self, key: str, text: str, mark: str) -> None:
        body = {"text": text, "idempotency_key": f"{self.name}-{mark}"}
        answer = await self.ask("POST", f"/api/sessions/{key}/messages", json=body)
        assert answer.status_code == 202, answer.text

    async def said_at_home(self, *words: str) -> dict[str, Any]:
        """Wait for a message at home with these words."""
        return await self.find(
            f"/api/sessions/{self.home}", "messages",
            lambda one: one["role"] == "assistant" and all(word in one["text"] for word in words),
        )  # fmt: skip

    async def why(self, id_: str) -> str:
        """Return a story in words."""
        answer = await self.ask("GET", f"/api/why/{id_}")
        assert answer.status_code == 200, answer.text
        return "\n".join(step["text"] for step in answer.json()["steps"])

    async def whole(self) -> str:
        """Return the stories of all that was said in the conversation."""
        answer = await self.ask("GET", f"/api/sessions/{self.key}")
        lines = answer.json()["messages"]
        return "\n".join([await self.why(one["id"]) for one in lines if one["role"] != "user"])

    # ------------------------------------------------------------ what happens

    async def allow(self, row: str = "") -> dict[str, Any]:
        """Allow one command for good, whoever asks for it, or for one row of the timetable."""
        argv = command("granted", "x").split()
        body = {"tool": "shell", "name": "mark", "holds_for_outside": True, "row": row,
                "constraints": [{"kind": "argv", "argv": argv}]}  # fmt: skip
        answer = await self.ask("POST", "/api/grants", json=body)
        assert answer.status_code in (201, 409), answer.text
        return await self.find("/api/grants", "grants", lambda one: one["name"] == "mark")

    async def look_up(self) -> None:
        """Have three questions looked up, and go."""
        orders = [
            order("research", task=order("web_search", query=f"{self.name}-{number}"))
            for number in range(QUESTIONS)
        ]
        await self.say(self.key, " ".join(orders), "ask")

    async def task(self, title: str) -> dict[str, Any]:
        wanted = f"{title} {self.name}-{0 if title == 'wait' else 1}"
        return await self.find("/api/tasks", "tasks", lambda one: one["title"] == wanted)

    async def findings(self) -> list[dict[str, Any]]:
        """Wait until all that was found is kept; return it."""
        names = [f"finding {self.name}-{number}" for number in range(QUESTIONS)]
        path = "/api/memories"
        return [
            await self.find(path, "memories", lambda one, n=name: one["content"] == n)  # type: ignore[misc]
            for name in names
        ]

    async def let_run(self) -> dict[str, Any]:
        """Let one of the tasks go on; return the request that it leads to."""
        self.begun = await self.task("run")
        path = f"/api/tasks/{self.begun['id']}"
        answer = await self.ask("PATCH", path, json={"status": "ready"})
        assert answer.status_code in (200, 409), answer.text  # 409: it took the first time
        wanted = {"command": command("asked", f"{self.name}-1")}
        self.request = await self.find(
            "/api/approvals", "approvals", lambda one: one["input"] == wanted
        )
        return self.request

    async def accept(self) -> None:
        """Say yes at home, with the request's short name: a second time, once it was told there
        what exactly that is, since it may be from outside."""
        words = f"accept {self.request['name']}"
        await self.say(self.home, words, "accept")
        await self.said_at_home(spoken.UNREAD, self.request["id"], self.request["input"]["command"])
        await self.say(self.home, words, "accept-again")

    async def done(self) -> dict[str, Any]:
        """Wait until the task that may go on is done."""
        return await self.until(
            f"/api/tasks/{self.begun['id']}", lambda task: task["status"] == "done"
        )

    async def decided(self) -> None:
        """Wait until the yes has reached who asked."""
        path = f"/api/approvals/{self.request['id']}"
        await self.until(path, lambda approval: approval["state"] == "accepted")

    async def told_of_errands(self, count: int) -> None:
        """Wait until the home was told of so many calls that were accepted."""
        await self.until(
            f"/api/sessions/{self.home}",
            lambda answer: str(answer["messages"]).count("which you accepted, ") >= count,
        )


def runs(workspaces: Path, what: str) -> int:
    """Return how often a command ran."""
    return sum(file.name.startswith(f"{what}-") for file in workspaces.rglob("*"))
