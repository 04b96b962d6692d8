"""A person with a browser: signs in, sends forms as pages have them, reads what a page shows."""

from __future__ import annotations

import contextlib
import html.parser
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx2

from tests.support.gateway import WAIT_S, Gate
from vigil.contracts import Signal, SignalSource, encode
from vigil.subjects import SessionKey

HERE: Final = {"sec-fetch-site": "same-origin"}
"""What a browser says of a form that a page of ours sends."""
VOID: Final = frozenset({"meta", "link", "input", "br", "img"})


class Shown(html.parser.HTMLParser):
    """A page: its text, its links, its forms, and whether its tags are in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text = ""
        self.told = ""
        """The text outside of text areas, which hold what is stored, also what nobody sees."""
        self.links: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.depths: dict[str, int] = {}
        """How many lists each link stands in."""
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "a":
            link = found["href"] or ""
            self.links.append(link)
            if "main" in self._open:
                self.depths[link] = self._open.count("ul")
        if tag == "form":
            self.forms.append({"action": found.get("action") or ""})
        is_field = tag in ("input", "textarea", "button", "select") and found.get("name")
        is_off = found.get("type") == "checkbox" and "checked" not in found
        if (
            is_field and not is_off and not found.get("form")
        ):  # that of another form, which it names
            self.forms[-1][str(found["name"])] = found.get("value") or ""

    def strange(self) -> list[str]:
        """Return what no page of ours has: tags that act, but for scripts and files of
        ours, and handlers."""
        return [
            tag
            for tag, found in self.tags
            if tag in ("iframe", "object", "style")
            or (tag == "img" and not str(found.get("src")).startswith("/console/files/"))
            or (tag == "script" and not str(found.get("src")).startswith("/console/static/"))
            or any(name.startswith("on") or name == "style" for name in found)
        ]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"{tag} ends what isn't open"

    def handle_data(self, data: str) -> None:
        self.text += data
        if "textarea" not in self._open:
            self.told += data


def covering(shown: Mapping[str, Shown], known: Iterable[Shown] = ()) -> list[str]:
    """Return the paths of a few pages that have, among them, every kind of element that any of
    them has and no page that is known: a tag with its classes, its type and its role."""
    kinds = {path: {_kind(*one) for one in page.tags} for path, page in shown.items()}
    left, found = set[tuple[str, ...]]().union(*kinds.values()), list[str]()
    left -= {_kind(*one) for page in known for one in page.tags}
    while left:
        most = max(kinds, key=lambda path: len(kinds[path] & left))
        left -= kinds[most]
        found.append(most)
    return found


def _kind(tag: str, given: dict[str, str | None]) -> tuple[str, ...]:
    classes = sorted((given.get("class") or "").split())
    return (tag, given.get("type") or "", given.get("role") or "", *classes)


class Reader:
    """Somebody who is signed in."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def page(self, path: str = "", **query: Any) -> Shown:
        """Return a page below the console's path, which has to be there."""
        answer = await self.client.get(f"/console{path}", params=query or None)
        assert answer.status_code == 200, answer.text
        return Shown(answer.text)

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form; if that is asked about, say yes."""
        answer = await self.client.post(f"/console{path}", data=fields, headers=HERE)
        if answer.status_code == 200 and '<form method="post" id="sure">' in answer.text:
            (sure,) = Shown(answer.text).forms
            del sure["action"]
            answer = await self.client.post(f"/console{path}", data=sure, headers=HERE)
        return answer

    async def did(self, path: str, **fields: str) -> str:
        """Send a form that does something; return where it leads."""
        answer = await self.send(path, **fields)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]


async def link_of(gate: Gate, token: str) -> str:
    """Return a new link, as `vigil console` prints it."""
    answer = await (await gate.http(token)).post("/api/console/links")
    assert answer.status_code == 201, answer.text
    path: str = answer.json()["path"]
    return path


@contextlib.asynccontextmanager
async def browser(gate: Gate) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser that nobody is signed in with."""
    url = f"http://127.0.0.1:{gate.port}"
    async with httpx2.AsyncClient(base_url=url, timeout=WAIT_S) as client:
        yield client


async def signed_in(gate: Gate, user: str, **options: Any) -> Reader:
    """Sign somebody in with a browser of their own."""
    token = await gate.token(user, **options)
    client = await gate.http()
    code = (await link_of(gate, token)).partition("=")[2]
    answer = await client.post("/console/enter", data={"code": code}, headers=HERE)
    assert answer.status_code == 303, answer.text
    return Reader(client)


def pages() -> Iterator[str]:
    """Yield the paths of the pages that the navigation leads to."""
    from services.gateway.console.site import PAGES

    yield from (one.path for one in PAGES)


async def signal(gate: Gate, key: SessionKey, text: str = "") -> int:
    """Tell that something happened in a session, as the projector does; return its place."""
    told = Signal(
        id="SESSIONS-1-message.sent",
        kind="message.sent",
        agent=key.agent,
        owner=key.user,
        at=datetime.now(UTC),
        source=SignalSource(stream="SESSIONS", seq=1),
        session_key=str(key),
        text=text,
    )
    return (await gate.admin.publish(key.signal(told.kind), encode(told))).seq
