"""What of the agent's a reply in a chat network is to (FLOW F-2), by the receipts on the log."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from services.gateway.state import replies
from tests.support.delivery import conversation
from tests.support.stack import Stack
from vigil.clock import SystemClock
from vigil.contracts import Receipt, encode

APART: Final = timedelta(minutes=7)


async def test_a_reply_is_to_what_came_of_the_effect_whose_receipt_names_it_about_then(
    bare: Stack,
) -> None:
    """Of a long conversation those of that time are read; what is named elsewhere isn't found."""
    talk = conversation(await bare.bus("admin"))
    begun = SystemClock().now() - timedelta(days=3)
    for number in range(40):
        receipt = Receipt(
            effect_id=f"e{number}", session_key=str(talk.key), outcome="delivered",
            at=begun + number * APART, sent=(f"tele 77 {2 * number}", f"tele 77 {2 * number + 1}"),
        )  # fmt: skip
        await talk.bus.publish(talk.key.receipt(receipt.effect_id), encode(receipt))

    async def found(mark: str, number: int) -> str | None:
        return await replies.sent_as(talk.bus, talk.key, mark, begun + number * APART)

    for number in (0, 1, 20, 39):
        assert await found(f"tele 77 {2 * number + 1}", number) == f"e{number}"
    assert await found("tele 78 3", 1) is None
    assert await found("tele 77 3", 9) is None, "long before the time that is told"
    other = conversation(talk.bus, "t9")
    assert await replies.sent_as(other.bus, other.key, "tele 77 3", begun) is None
