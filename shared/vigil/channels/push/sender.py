"""What sends a message to each browser of its person, and tells how that ended as one answer.

A browser that took a message isn't asked again for it as long as this process remembers; after
that, the message's id has the repeat take its place. One whose push service asked for a pause isn't
asked within it, for nothing else either. What one browser's service does says nothing of others'.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from ...contracts import Approval, Said
from ...errors import InvalidInput, VigilError
from ...net.ssrf import Rules
from ...subjects import SessionKey
from ...words.asked import asked_in
from ..answers import Answer, NotTaken, Taken, Unclear
from ..contract import ChannelContext
from ..post import GuardedPost
from ..whom import event_of, user_of
from . import subscriptions
from .notification import PushedNotification, notification_of
from .subscriptions import StoredSubscription

if TYPE_CHECKING:
    from .section import PushChannel
    from .vapid import Vapid

log = structlog.get_logger("vigil.channels")

GONE: Final = frozenset({404, 410})
"""What a push service answers of a subscription that ended (RFC 8030, 7.3)."""
MORE_TRIES_MAX: Final = 3
"""Tries of a message that another browser of its person has."""
REMEMBERED_MAX: Final = 1_000
NOBODY: Final = 'no browser of theirs is notified: "Notify me in this browser" in the console'


class Carried(msgspec.Struct, kw_only=True):
    """How far a message has come."""

    over: set[str] = msgspec.field(default_factory=set)
    """Browsers that have it, or never will."""
    has_any: bool = False
    tries: int = 0


class PushSender:
    """The way out to browsers."""

    def __init__(self, section: PushChannel, rules: Rules, context: ChannelContext) -> None:
        self._section = section
        self._context = context
        self._post = GuardedPost(rules, context.clock, timeout_s=section.timeout_s)
        self._carried: OrderedDict[str, Carried] = OrderedDict()
        self._pauses: OrderedDict[str, datetime] = OrderedDict()

    def __repr__(self) -> str:
        return f"PushSender({self._context.name!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        try:
            event = await event_of(self._context.bus, said)
            there = await self._browsers_of(user_of(said, event))
            approval = await self._asked_for(said)
        except VigilError as error:
            return NotTaken(reason=f"whom it is for can't be looked up: {error}")
        if not there:
            return NotTaken(reason=NOBODY, is_final=True)
        shown = notification_of(said, approval, event, self._context.clock.now())
        carried = self._of(said.id)
        left = [one for one in there if one.subscription.id not in carried.over]
        answers = await asyncio.gather(*(self._try(one, shown) for one in left))
        carried.tries += 1
        for one, answer in zip(left, answers, strict=True):
            carried.has_any = carried.has_any or isinstance(answer, Taken)
            if isinstance(answer, Taken) or (isinstance(answer, NotTaken) and answer.is_final):
                carried.over.add(one.subscription.id)
        return summed(answers, has_any=carried.has_any, tries=carried.tries)

    @functools.cached_property
    def _vapid(self) -> Vapid:
        """Raises: InvalidInput, the key can't be used."""
        # With the first message: what signs and encrypts is 7 MB, and 30 ms of CPU.
        from . import vapid

        return vapid.Vapid(vapid.key_of(self._context.home), self._section.contact)

    async def close(self) -> None:
        await self._post.close()

    async def _browsers_of(self, user: str) -> list[StoredSubscription]:
        bus = self._context.bus
        return [] if bus is None or not user else await subscriptions.of_person(bus, user)

    async def _asked_for(self, said: Said) -> Approval | None:
        """Return the one open request that a message tells."""
        name, find = asked_in(said.text), self._context.request_of
        if not name or find is None:
            return None
        return await find(SessionKey.parse(said.session_key), name)

    def _of(self, id_: str) -> Carried:
        found = self._carried.setdefault(id_, Carried())
        self._carried.move_to_end(id_)
        if len(self._carried) > REMEMBERED_MAX:
            self._carried.popitem(last=False)
        return found

    # ------------------------------------------------------------ one browser

    async def _try(self, one: StoredSubscription, shown: PushedNotification) -> Answer:
        to, now = one.subscription, self._context.clock.now()
        until = self._pauses.get(to.id)
        if until is not None and now < until:
            wait_s = (until - now).total_seconds()
            return NotTaken(reason="its push service asked for a pause", wait_s=wait_s)
        note = msgspec.structs.replace(shown.notification, is_silent=to.is_silent)
        from .seal import sealed

        try:
            self._section.check_endpoint(to.endpoint)
            body = sealed(text_of(note), to.p256dh, to.auth)
            authorization = self._vapid.header(to.endpoint, now)
        except InvalidInput as error:
            return NotTaken(reason=f"{error.field} {error.reason}", is_final=True)
        answer = await self._post.send(
            to.endpoint,
            body,
            {
                "content-type": "application/octet-stream",
                "content-encoding": "aes128gcm",
                "authorization": authorization,
                "ttl": str(shown.ttl_s),
                "urgency": shown.urgency,
                "topic": note.id[:32],
            },
        )
        if isinstance(answer, NotTaken):
            await self._note(one, answer)
        return answer

    async def _note(self, one: StoredSubscription, answer: NotTaken) -> None:
        """Keep what a push service says of a browser beyond this message."""
        if answer.wait_s:
            longest = timedelta(seconds=min(answer.wait_s, self._section.backoff_cap_s))
            self._pauses[one.subscription.id] = self._context.clock.now() + longest
            if len(self._pauses) > REMEMBERED_MAX:
                self._pauses.popitem(last=False)
        bus = self._context.bus
        if answer.status not in GONE or bus is None:
            return
        try:
            is_removed = await subscriptions.remove(bus, one)
        except VigilError:
            return  # the next message finds it again
        if is_removed:
            log.info("browser is gone", action="delivery.push_gone", browser=one.subscription.id)


def text_of(note: object) -> bytes:
    """Return what is encrypted: of what is too long, a message is cut, which leads to its whole."""
    from .seal import TEXT_BYTES_MAX

    text = msgspec.json.encode(note)
    if len(text) <= TEXT_BYTES_MAX:
        return text
    fields = msgspec.to_builtins(note)
    room = len(fields["body"].encode()) - (len(text) - TEXT_BYTES_MAX) * 2
    fields["body"] = fields["body"].encode()[: max(room, 0)].decode("utf-8", "ignore") + "…"
    fields.pop("request", None)  # nobody decides what they aren't shown whole
    return msgspec.json.encode(fields)


def summed(answers: list[Answer], *, has_any: bool, tries: int) -> Answer:
    """Return how a try ended for a person with several browsers. Pure.

    Args:
        answers: of the browsers that were tried.
        has_any: whether one has it, by now.
        tries: of this message, by now.

    >>> busy = NotTaken(reason="429 Too Many Requests", status=429, wait_s=30.0)
    >>> summed([Taken(reason="201 Created"), busy], has_any=True, tries=1).wait_s
    30.0
    >>> summed([busy], has_any=True, tries=3).reason
    'in a browser; not in every one: 429 Too Many Requests'
    """
    unclear = [one for one in answers if isinstance(one, Unclear)]
    refused = [one for one in answers if isinstance(one, NotTaken)]
    later = [one for one in refused if not one.is_final]
    failed: list[NotTaken | Unclear] = [*unclear, *refused]
    reasons = "; ".join(dict.fromkeys(one.reason for one in failed))
    if has_any and (not (unclear or later) or tries >= MORE_TRIES_MAX):
        return Taken(reason=f"in a browser; not in every one: {reasons}" if reasons else "taken")
    if unclear:
        return Unclear(reason=reasons, status=unclear[0].status, is_apart=True)
    if later:
        wait_s = min(one.wait_s for one in later)
        return NotTaken(reason=reasons, status=later[0].status, wait_s=wait_s, is_apart=True)
    status = refused[0].status if refused else None
    return NotTaken(reason=reasons or NOBODY, status=status, is_final=True)
