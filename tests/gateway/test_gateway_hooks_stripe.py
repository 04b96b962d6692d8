"""Webhooks signed as Stripe signs them (RELIABILITY S7)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.gateway.test_gateway_hooks import BODY, GITHUB, STRIPE, of_github, post, running, stored
from tests.support.gateway import Gate, assert_problem


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with running(tmp_path) as gate:
        yield gate


def of_stripe(
    body: bytes = BODY, secret: str = STRIPE, age: timedelta = timedelta(), more: str = ""
) -> dict[str, str]:
    """Return the header that Stripe sends."""
    at = int((datetime.now(UTC) - age).timestamp())
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t={at},{more}v1={digest}", "content-type": "application/json"}


CHARGE = b'{"id": "evt_1", "type": "charge.failed", "created": 1795165200}'


async def test_a_webhook_of_stripe(gate: Gate) -> None:
    """Id and type are those of the body, which is signed; a repeat is signed anew."""
    client = await gate.http()
    first = await post(client, of_stripe(CHARGE), CHARGE, "shop")
    assert first.status_code == 202, first.text
    again = of_stripe(CHARGE, age=timedelta(minutes=4), more=f"v0=x,v1={'0' * 64},")
    assert (await post(client, again, CHARGE, "shop")).json() == first.json()
    other = of_stripe(BODY, secret="other-" * 4)
    for _ in range(2):  # of one without an id the body is what it's known by
        assert (await post(client, other, BODY, "shop")).status_code == 202
    one, two = await stored(gate, "t4")
    assert (one.payload.kind, one.payload.origin_id) == ("charge.failed", "evt_1")
    assert two.payload.origin_id == hashlib.sha256(BODY).hexdigest()


async def test_what_stripe_did_not_sign_is_refused(gate: Gate) -> None:
    """RELIABILITY S7, for Stripe's scheme."""
    client = await gate.http()
    whole = of_stripe(CHARGE)["stripe-signature"]
    at, _, digest = whole.removeprefix("t=").partition(",v1=")
    for header, body in (
        (whole, CHARGE + b" "),
        (of_stripe(CHARGE, secret=GITHUB)["stripe-signature"], CHARGE),
        (of_stripe(CHARGE, age=timedelta(minutes=5, seconds=5))["stripe-signature"], CHARGE),
        (of_stripe(CHARGE, age=-timedelta(minutes=5, seconds=5))["stripe-signature"], CHARGE),
        (f"t={at},t={int(at) + 1},v1={digest}", CHARGE),
        (f"t={at},v0={digest}", CHARGE),
        (f"v1={digest}", CHARGE),
        (f"t={at}", CHARGE),
        (f"t=-{at},v1={digest}", CHARGE),
        ("", CHARGE),
    ):
        sent = {"stripe-signature": header}
        assert_problem(await post(client, sent, body, "shop"), 401)
    assert_problem(await post(client, of_github(CHARGE), CHARGE, "shop"), 401)
    assert await stored(gate, "t4") == []
