"""What sends a message as a mail, to an address that its person paired.

Every try is the same bytes, with the same Message-ID; what came of it says `vigil.mail.smtp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts import Said, UserMessage
from ...contracts.mail.heads import MailHead
from ...errors import VigilError
from ...mail.access import Access
from ...mail.smtp import Handed, MailEnvelope, SmtpWay, smtp_of
from .. import pairs
from ..answers import Answer, NotTaken, Taken, Unclear
from ..contract import ChannelContext
from ..whom import asked_by, user_of
from .composition import Letterhead, composed

if TYPE_CHECKING:
    from .section import MailAccount


class MailSender:
    """One account's way out."""

    def __init__(self, account: MailAccount, access: Access, context: ChannelContext) -> None:
        self._account = account
        self._context = context
        self._way = SmtpWay(smtp_of(account.smtp(), account), access, context.home, context.clock)
        self._letterhead = Letterhead(
            address=account.address,
            name=account.name,
            console_url=account.console_url or context.console_url,
        )

    def __repr__(self) -> str:
        return f"MailSender({self._account.smtp_host!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        try:
            asked = await asked_by(self._context.bus, said)
            to = await self._address_of(said, asked)
        except VigilError as error:
            return NotTaken(reason=f"whom it is for can't be looked up: {error}")
        if to is None:
            reason = f"no address is paired; see `vigil mail pair {self._context.name} ADDRESS`"
            return NotTaken(reason=reason, is_final=True)
        head = None if asked is None else asked.payload.mail
        return await self._sent(said.id, to, composed(said, to, head, self._letterhead))

    async def _sent(self, effect_id: str, to: str, data: bytes) -> Answer:
        envelope = MailEnvelope(sender=self._account.address, to=(to,), id=effect_id)
        handed = await self._way.hand_over(envelope, data)
        return answer_of(handed)

    async def close(self) -> None:
        """Nothing: each try has a connection of its own."""

    async def _address_of(self, said: Said, asked: UserMessage | None) -> str | None:
        bus, user = self._context.bus, user_of(said, asked)
        if bus is None or not user:
            return None
        person = await pairs.find(bus, self._context.name, user)
        mail: MailHead | None = None if asked is None else asked.payload.mail
        return pairs.address_for(person, "" if mail is None else mail.address)


def answer_of(handed: Handed) -> Answer:
    """Return what a try came to, as delivery takes it."""
    if handed.state == "taken":
        return Taken(reason=handed.reason)
    if handed.state == "unclear":
        return Unclear(reason=handed.reason)
    return NotTaken(
        reason=handed.reason,
        status=handed.status,
        wait_s=handed.wait_s,
        is_final=handed.is_final,
    )
