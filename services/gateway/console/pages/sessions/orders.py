"""Slash commands in the field of a conversation: each does what the page, or another, offers.

What they are called is in :mod:`vigil.words.slash`, which `vigil chat` reads, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from vigil.subjects import SessionKey
from vigil.words import slash

from ....http.problem import Problem
from ....http.wire import Transcript, TranscriptMessage
from ....trust.endpoint import PATH as TRUST
from ....trust.letters import LetterList
from ...second_thoughts import with_undo
from ...visit import Visit

SEARCHED_MAX: Final = 50
"""Messages that are looked through for the one that is meant."""


async def say(visit: Visit, text: str, reply_to: str | None = None) -> None:
    """Say something in the conversation of the page, with the files that were chosen."""
    body: dict[str, Any] = {"text": text, "idempotency_key": visit.wanted("once")}
    if reply_to:
        body["reply_to"] = reply_to
    hashes: dict[str, None] = {}  # a file that was chosen twice is one
    for name, data in visit.files:
        kept = await visit.api.upload("/api/attachments", data, name=name)
        hashes[kept["hash"]] = None
    if hashes:
        body["attachments"] = list(hashes)
    await visit.api.send("POST", f"{_path(visit)}/messages", body)


async def replace(visit: Visit, message: int, text: str | None) -> None:
    """Say a message otherwise, or have it answered anew."""
    wanted = {"message": message, "idempotency_key": visit.wanted("once")}
    wanted |= {} if text is None else {"text": text}
    await visit.api.send("POST", f"{_path(visit)}/versions", wanted)


async def trust(visit: Visit, source: str) -> str:
    """Trust where a letter came from; return what undoes that."""
    agent = SessionKey.parse(visit.named("key")).agent
    made = await visit.api.send("POST", TRUST, {"source": source, "agentId": agent})
    return f"trust/{made['id']}/{agent}"


async def take(visit: Visit, text: str) -> str | dict[str, Any]:
    """Say what was written, or obey it; return where to go on, or what the page tells.

    Raises:
        Problem: as the API answers it.
    """
    match slash.read(text, is_terminal=False):
        case slash.UnknownSlash(told):
            return {"told": [told], "begun": text}
        case slash.SlashOrder(command, rest):
            return await OBEYS[command.name](visit, rest) or _usage(command)
        case slash.PlainWords(words):
            await say(visit, words, visit.form.get("reply_to"))
    return _end(visit)


def _usage(command: slash.SlashCommand) -> dict[str, Any]:
    return {"told": [command.usage], "begun": f"/{command.name} "}


async def _new(visit: Visit, rest: str) -> str:
    key = SessionKey.parse(visit.named("key"))
    return f"/conversations/{key.user}:{key.agent}:chat-{secrets.token_hex(6)}"


async def _stop(visit: Visit, rest: str) -> str:
    await visit.api.send("POST", f"{_path(visit)}/stop")
    return _end(visit)


async def _remind(visit: Visit, rest: str) -> str:
    if not rest:
        return f"{_page(visit)}#to-come"
    await say(visit, slash.reminder_of(rest))
    return _end(visit)


async def _tasks(visit: Visit, rest: str) -> str:
    return "/tasks"


async def _edit(visit: Visit, rest: str) -> str:
    message = (await _said(visit, "user", 1)).seq
    if not rest:
        return f"{_page(visit)}?edit={message}#m-{message}"
    await replace(visit, message, rest)
    return _end(visit)


async def _retry(visit: Visit, rest: str) -> str:
    if not rest:
        await replace(visit, (await _said(visit, "user", 1)).seq, None)
    return "" if rest else _end(visit)


async def _letters(visit: Visit, rest: str) -> str:
    return f"{_page(visit)}?letters=1#letters"


async def _delete(visit: Visit, rest: str) -> str:
    if rest == "yes":
        await visit.api.send("DELETE", _path(visit))
    return "/conversations" if rest == "yes" else ""


async def _help(visit: Visit, rest: str) -> dict[str, Any]:
    return {"told": list(slash.usages(is_terminal=False))}


async def _reply(visit: Visit, rest: str) -> str:
    # A reply to what the agent said may begin with any word but a letter's name.
    if slash.handle_of(rest):
        return await _open(visit, rest)
    back, text = slash.reply_of(rest)
    if text:
        await say(visit, text, (await _said(visit, "assistant", back)).id)
    return _end(visit) if text else ""


async def _open(visit: Visit, rest: str) -> str:
    handle = slash.handle_of(rest)
    if handle:
        text = rest[len(handle) :].strip()
        await say(visit, f"open {handle}: {text}" if text else f"open {handle}")
    return _end(visit) if handle else ""


async def _fine(visit: Visit, rest: str) -> str:
    # The button is beside the whole letter: nobody vouches for what they weren't shown.
    handle = slash.handle_of(rest)
    return f"{_page(visit)}?letter={handle}#letter" if handle else ""


async def _trust(visit: Visit, rest: str) -> str:
    if not (handle := slash.handle_of(rest)):
        return ""
    found = (await visit.api.get(LetterList, f"{_path(visit)}/letters")).letters
    source = next((one.source for one in found if one.handle == handle), "")
    if not source:
        raise Problem(422, f"{handle} is from nothing that has a name", field="text")
    undo = await trust(visit, source)
    return with_undo(await _letters(visit, ""), undo)


async def _why(visit: Visit, rest: str) -> str:
    back, id_ = slash.asked_of(rest)
    meant = id_ or (await _said(visit, "assistant", back)).id
    return "/why?" + urlencode({"id": meant, "session": visit.named("key")})


async def _said(visit: Visit, role: str, back: int) -> TranscriptMessage:
    """Return what was said so many messages ago, 1: last. Raises: Problem, 422: nothing was."""
    found = await visit.api.get(Transcript, _path(visit), limit=SEARCHED_MAX)
    said = [one for one in found.messages if one.role == role and one.taken_back_by is None]
    if not 0 < back <= len(said):
        raise Problem(422, "nothing was said here that long ago", field="text")
    return said[-back]


def _path(visit: Visit) -> str:
    return f"/api/sessions/{visit.named('key')}"


def _page(visit: Visit) -> str:
    return f"/conversations/{visit.named('key')}"


def _end(visit: Visit) -> str:
    return f"{_page(visit)}#end"


Obey = Callable[[Visit, str], Awaitable[str | dict[str, Any]]]
OBEYS: Final[Mapping[str, Obey]] = {
    "new": _new,
    "stop": _stop,
    "why": _why,
    "remind": _remind,
    "tasks": _tasks,
    "edit": _edit,
    "retry": _retry,
    "reply": _reply,
    "letters": _letters,
    "open": _open,
    "fine": _fine,
    "trust": _trust,
    "delete": _delete,
    "help": _help,
}
"""What obeys each; nothing is returned where more has to be said, and then the page says what."""
