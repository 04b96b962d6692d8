"""Probes of watchers: looks at what is watched, and tells the difference (LOOPS L-3).

What is fetched is fetched as `http_get` does it, and judged by the same rules. Nothing is kept.
A look that failed some times, one after the other, is told the person once, and once more when it
works again: under a name of the row's ledger, so a repeat tells nothing twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import zlib
from collections.abc import AsyncIterator
from difflib import unified_diff
from typing import Any, Final

from vigil import __version__
from vigil.bus.micro import Refusal, Request, Rpc, serving
from vigil.contracts import ToldPayload
from vigil.contracts import encode as encode_event
from vigil.contracts.board import SeenPage, WatchedUrl
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.net.client import FAILURES, why_failed
from vigil.net.ssrf import RequestRefused
from vigil.runtime import Context
from vigil.subjects import SessionKey, token_of
from vigil.timetable.pointer import at_pointer
from vigil.timetable.probe import (
    CHANGE_LENGTH_MAX,
    CONCURRENCY_MAX,
    EXECUTOR_PROBE,
    FAILURES_TOLD,
    TEXT_LENGTH_MAX,
    TIMEOUT_S,
    ProbeAnswer,
    ProbeQuestion,
    decode_question,
    encode,
    is_of,
    what_of,
)

from . import work
from .own_tools.http_get import HTML, READ_S, XHTML, Fetcher, Page, is_text, readable_of, text_of
from .slots import WHAT, channel_of, homes_for

LOOK_S: Final = TIMEOUT_S - READ_S - 10.0
"""For a page to come, whatever `executor.http_timeout_s` gives it: who asks waits no longer, and
would ask again while it is still coming."""
PROBLEM_LENGTH_MAX: Final = 300
UNCHANGED_STATUS: Final = 304
BEHIND: Final = f"(it differs behind the first {TEXT_LENGTH_MAX:,} characters)"


class Watcher:
    """Answers what the scheduler asks of watchers."""

    def __init__(self, context: Context, fetcher: Fetcher) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._fetcher = fetcher
        self._instance = context.instance

    @contextlib.asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer for as long as the block lasts; of several replicas, one does."""
        endpoint = Rpc(name="probe", subject=EXECUTOR_PROBE, handle=self._answer)
        async with serving(
            self._bus,
            [endpoint],
            name=work.SERVICE,
            version=__version__,
            description="Looks at what is watched.",
            instance=self._instance,
            concurrency_max=CONCURRENCY_MAX,
        ):
            yield

    async def _answer(self, asked: Request) -> bytes:
        try:
            question = decode_question(asked.data)
            answer = await self.look(question)
            await self._tell(question, answer)
        except InvalidInput as error:
            raise Refusal(422, str(error), b"") from error
        return encode(answer)

    async def look(self, question: ProbeQuestion) -> ProbeAnswer:
        """Look at what is watched; whatever goes wrong is a problem of the answer."""
        watch, seen = question.watch, question.seen
        before = seen if is_of(seen, watch) else None
        key = SessionKey.parse(question.session)
        try:
            async with asyncio.timeout(LOOK_S):
                page = await self._fetcher.look(watch.url, key.kind, _conditions(before))
            if page.status == UNCHANGED_STATUS and before is not None:
                return ProbeAnswer(seen=_again(before, page))
            if page.status != 200:
                raise RequestRefused("url", f"answers {page.status} {page.reason}".strip())
            text = self._fetcher.hidden(await _text(page, watch))
        except TimeoutError:
            problem = "no whole answer in time"
        except zlib.error as error:
            problem = f"it can't be unpacked: {error}"
        except InvalidInput as error:
            problem = f"the {error.field} {error.reason}"
        except FAILURES as error:
            problem = self._fetcher.hidden(why_failed(error))
        else:
            after = _seen(watch, page, text)
            change = "" if before is None else await asyncio.to_thread(difference, before, after)
            return ProbeAnswer(seen=after, change=change)
        return ProbeAnswer(seen=SeenPage(what=what_of(watch)), problem=problem[:PROBLEM_LENGTH_MAX])

    async def _tell(self, question: ProbeQuestion, answer: ProbeAnswer) -> None:
        """Tell the person that it doesn't work, or does again."""
        told = told_of(question, answer)
        if told is None:
            return
        key, slot = SessionKey.parse(question.session), question.slot
        name = f"watch-{token_of(slot.row, str(question.after), told.text[-20:])}"
        for home in homes_for(self._config, key, slot):
            event = work.told_of(home, name, told, now=self._clock.now())
            with contextlib.suppress(WrongLastSequence):  # told before
                await self._bus.publish(
                    home.in_event(f"told.{name}"), encode_event(event), expect=0
                )


def told_of(question: ProbeQuestion, answer: ProbeAnswer) -> ToldPayload | None:
    """Return what the person is told of a look; None: nothing. What a server said isn't in it."""
    slot, seen = question.slot, question.seen
    failures = 0 if seen is None or seen.what != what_of(question.watch) else seen.failures
    where = f"(`vigil cron history {slot.row[:8]}`)"
    if answer.problem and failures + 1 == FAILURES_TOLD:
        text = f"The watcher {slot.name!r} couldn't look {FAILURES_TOLD} times {where}."
        text += " It goes on trying."
    elif not answer.problem and failures >= FAILURES_TOLD:
        text = f"The watcher {slot.name!r} works again."
    else:
        return None
    return ToldPayload(
        origin=question.session,
        text=text,
        what=WHAT,
        title=slot.name,
        is_ordered=slot.is_ordered,
        channel=channel_of(slot),
    )


# ---------------------------------------------------------------- what is seen


def _conditions(seen: SeenPage | None) -> dict[str, str]:
    """Return the headers that have a server say only that nothing has changed (RFC 9110)."""
    if seen is None:
        return {}
    given = {"if-none-match": seen.etag, "if-modified-since": seen.modified}
    return {name: value for name, value in given.items() if value}


def _again(seen: SeenPage, page: Page) -> SeenPage:
    """Keep what was seen: it works, and nothing has changed."""
    return SeenPage(
        what=seen.what,
        etag=page.etag or seen.etag,
        modified=page.modified or seen.modified,
        digest=seen.digest,
        text=seen.text,
    )


def _seen(watch: WatchedUrl, page: Page, text: str) -> SeenPage:
    return SeenPage(
        what=what_of(watch),
        etag=page.etag if page.is_whole else "",
        modified=page.modified if page.is_whole else "",
        digest=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        text=text[:TEXT_LENGTH_MAX],
    )


async def _text(page: Page, watch: WatchedUrl) -> str:
    """Return what counts of a page. Raises: InvalidInput."""
    if watch.pointer:
        if not page.is_whole:
            raise InvalidInput("pointer", "leads into a document that is too long to be read")
        return _shown(at_pointer(text_of(page), watch.pointer))
    if not is_text(page):
        return f"[{len(page.body)} bytes that are no text, {hashlib.sha256(page.body).hexdigest()}]"
    text = text_of(page)
    if page.type in HTML:
        return await readable_of(text, page.url, is_xml=page.type == XHTML)
    return text


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)


def difference(before: SeenPage, after: SeenPage) -> str:
    """Return what differs, a line each as in a patch; empty: nothing does.

    >>> old = SeenPage(what="a", digest="1", text="one\\ntwo")
    >>> print(difference(old, SeenPage(what="a", digest="2", text="one\\nthree")))
     one
    -two
    +three
    >>> difference(old, old)
    ''
    """
    if before.digest == after.digest:
        return ""
    lines = unified_diff(before.text.splitlines(), after.text.splitlines(), n=1, lineterm="")
    found = "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
    if len(found) > CHANGE_LENGTH_MAX:
        return f"{found[:CHANGE_LENGTH_MAX]}\n(and more)"
    return found or BEHIND
