"""Who is notified in which browser, and what a notification's buttons do, as the console has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from services.gateway.console import decision
from services.gateway.http.problem import Problem
from tests.support import approvals
from tests.support.cli import Cli
from tests.support.console import HERE, Reader, link_of, signed_in
from tests.support.gateway import Gate, assert_problem, until
from tests.support.push_browsers import PushedBrowser
from tests.support.receiver import Receiver
from tests.support.stack import running_stack
from vigil.channels.push import subscriptions, vapid
from vigil.contracts import Control, decode_event
from vigil.settings import tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    """A gateway whose browsers may have push services on this machine: port 0 of the receiver."""
    home: Path = tmp_path_factory.mktemp("home")
    channels = {"push": {"kind": "push", "ports": [443, 9], "allow_private": True}}
    async with running_stack(home, ("gateway",), channels=channels) as stack:
        made = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        yield made
        await made.close()


def browser(name: str) -> PushedBrowser:
    receiver = Receiver()
    receiver.port = 9
    return PushedBrowser(receiver, name)


async def subscribe(reader: Reader, one: PushedBrowser, **fields: str) -> None:
    """Send what the button's form holds."""
    fields = {"do": "subscribe", "endpoint": one.endpoint} | one.keys | fields
    assert await reader.did("/notifications", **fields) == "/console/notifications"


async def notified(gate: Gate, user: str) -> list[str]:
    """Return the addresses at which somebody is notified."""
    found = await subscriptions.of_person(gate.admin, user)
    return [one.subscription.endpoint for one in found]


async def test_a_browser_is_its_persons_until_they_sign_out(gate: Gate) -> None:
    """Listed, with what it's called and never its address; whoever subscribes there last has it;
    signed out, from wherever, it's notified no more."""
    ann, ben = await signed_in(gate, "ann"), await signed_in(gate, "ben")
    page = await ann.page("/notifications")
    public = vapid.public_text(vapid.key_of(gate.stack.settings.home))
    assert ("form", public) in [(tag, found.get("data-push")) for tag, found in page.tags]
    one, two = browser("one"), browser("two")
    await subscribe(ann, one, sound="on", route="on")
    await subscribe(ann, one, sound="on")  # harmless
    text = (await ann.page("/notifications")).text
    assert "127.0.0.1, with sound" in text
    assert "/push/" not in text
    api = await gate.person("ann")
    assert (await api.get("/api/person")).json()["channel"] == "push"
    (shown,) = (await api.get("/api/push")).json()["browsers"]
    assert (shown["is_silent"], "endpoint" in shown) == (False, False)
    await subscribe(ben, one)
    assert (await notified(gate, "ann"), await notified(gate, "ben")) == ([], [one.endpoint])
    assert_problem(await api.delete(f"/api/push/browsers/{shown['id']}"), 404)
    await subscribe(ann, two)
    (shown,) = (await api.get("/api/push")).json()["browsers"]
    assert (await api.delete(f"/api/push/browsers/{shown['id']}")).status_code == 200
    assert await notified(gate, "ann") == []
    assert "there is none" in (await ann.page("/notifications")).text
    await subscribe(ann, two)
    await ben.did("/notifications", do="here", endpoint=one.endpoint)  # it's theirs already
    assert await notified(gate, "ann") == [two.endpoint]
    assert await notified(gate, "ben") == [one.endpoint]
    await ben.did("/notifications", do="here", endpoint=two.endpoint)  # signed in where ann was
    assert await notified(gate, "ann") == []
    await subscribe(ann, two)
    await ben.client.post("/console/leave", headers=HERE)
    assert await notified(gate, "ben") == []
    (there,) = (await api.get("/api/console/browsers")).json()["browsers"]
    await api.delete(f"/api/console/browsers/{there['id']}")
    assert await notified(gate, "ann") == []


async def test_it_ends_with_the_sign_in_that_there_is(gate: Gate) -> None:
    """Who signed in anew, a week later, signs out: the sign-in with which the button was pressed is
    over, and its token may be, too."""
    before, now, one = await signed_in(gate, "gil"), await signed_in(gate, "gil"), browser("gil")
    await subscribe(before, one, sound="on")
    await now.did("/notifications", do="here", endpoint=one.endpoint)
    await now.did("/notifications", do="here", endpoint=browser("another").endpoint)
    assert await notified(gate, "gil") == [one.endpoint]
    await before.client.post("/console/leave", headers=HERE)
    assert await notified(gate, "gil") == [one.endpoint]
    (shown,) = (await (await gate.person("gil")).get("/api/push")).json()["browsers"]
    assert shown["is_silent"] is False
    await now.client.post("/console/leave", headers=HERE)
    assert await notified(gate, "gil") == []


async def test_a_browser_that_exchanged_its_address_stays_as_it_was(gate: Gate) -> None:
    """By itself, as a service worker tells it: one browser, with the sound that was chosen."""
    fay, old, new = await signed_in(gate, "fay"), browser("old"), browser("new")
    await subscribe(fay, old, sound="on")
    for _ in range(2):  # harmless
        await subscribe(fay, new, replaces=old.endpoint)
    assert await notified(gate, "fay") == [new.endpoint]
    await subscribe(fay, new, replaces=new.endpoint)
    (shown,) = (await (await gate.person("fay")).get("/api/push")).json()["browsers"]
    assert shown["is_silent"] is False


async def test_it_ends_with_the_token(gate: Gate) -> None:
    token = await gate.token("eve")
    client = await gate.http()
    code = (await link_of(gate, token)).partition("=")[2]
    await client.post("/console/enter", data={"code": code}, headers=HERE)
    await subscribe(Reader(client), browser("eve"))
    assert await notified(gate, "eve")
    await tokens.revoke(gate.operator, token)

    async def is_gone() -> bool:
        return not await notified(gate, "eve")

    await until(is_gone, "the browser is notified no more")


async def test_an_address_that_nothing_may_go_to_is_refused(gate: Gate) -> None:
    """Each with its field and reason; nothing is kept."""
    api, one = await gate.person("cat"), browser("cat")
    good = {"endpoint": one.endpoint, "keys": one.keys}
    for endpoint in (f"http://127.0.0.1:{port}/x" for port in (gate.port, 22, 4222)):
        problem = assert_problem(
            await api.post("/api/push/browsers", json=good | {"endpoint": endpoint}),
            422,
            "endpoint",
        )
        assert "port" in problem["detail"]
    for endpoint in ("http://169.254.169.254:443/x", "ftp://push.example", "https://u:p@a.example"):
        assert_problem(
            await api.post("/api/push/browsers", json=good | {"endpoint": endpoint}),
            422,
            "endpoint",
        )
    bad = good | {"keys": one.keys | {"auth": "AAAA"}}
    assert_problem(await api.post("/api/push/browsers", json=bad), 422, "keys.auth")
    assert await notified(gate, "cat") == []


async def test_a_button_decides_once_on_what_was_shown(gate: Gate) -> None:
    """As who is signed in there: another person's, other arguments, an old sign-in and a second
    verdict are told why not, and change nothing."""
    ann, ben = await signed_in(gate, "ann"), await signed_in(gate, "ben")
    asked = approvals.request(approvals.ANN, "e" * 32)
    await approvals.ask(gate, asked)

    async def press(who: Reader, verdict: str = "accept", **fields: str) -> tuple[int, str]:
        body = {"id": asked.id, "digest": asked.digest, "verdict": verdict} | fields
        answer = await who.client.post("/console/decide", data=body, headers=HERE)
        told = answer.json()
        assert told["is_done"] == (answer.status_code == 200)
        return answer.status_code, told["text"]

    nobody = Reader(await gate.http())
    assert await press(nobody) == (401, "You are no longer signed in here. Sign in to decide.")
    assert (await press(ben))[0] == 404
    assert (await press(ann, digest="f" * 64))[0] == 409
    assert (await press(ann, "edit"))[0] == 422
    elsewhere = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    body = {"id": asked.id, "digest": asked.digest, "verdict": "accept"}
    forged = await ann.client.post("/console/decide", data=body, headers=elsewhere)
    assert forged.status_code == 403
    status, text = await press(ann, more="x" * 2_000_000)  # refused before anybody looks at it
    assert (status, text[:13]) == (413, "Not decided: ")
    assert await press(ann) == (200, "")
    assert await press(ann) == (200, "")  # the same again is the same
    status, text = await press(ann, "reject")
    assert status == 409
    assert text.startswith("Not decided: ")
    stored = await gate.admin.read(approvals.ANN.stream, [approvals.ANN.in_event("control")])
    given = [event for m in stored if isinstance(event := decode_event(m.data), Control)]
    assert [one.payload.decision and one.payload.decision.verdict for one in given] == ["accept"]


async def test_nothing_is_said_of_a_verdict_that_may_be_stored() -> None:
    """Where what keeps it was away as it came."""
    answer = decision.refused(Problem(503, "the broker is away", headers={"retry-after": "1"}))
    assert answer.headers["retry-after"] == "1"
    told = msgspec.json.decode(answer.body)
    assert told["text"] == "It isn't known whether this was decided: the broker is away"


async def test_the_command_lists_them_and_takes_one_back(gate: Gate, tmp_path: Path) -> None:
    """`vigil push`: your own, by the beginning of the id; nobody answers a test where nobody is."""
    token, one = await gate.token("dan"), browser("dan")
    cli = Cli(tmp_path, VIGIL_URL=f"http://127.0.0.1:{gate.port}", VIGIL_TOKEN=token)
    api = await gate.http(token)
    wanted = {"endpoint": one.endpoint, "keys": one.keys, "name": "a kiosk"}
    made = (await api.post("/api/push/browsers", json=wanted)).json()
    listed = await asyncio.to_thread(cli.json, "push")
    assert [(found["id"], found["name"]) for found in listed["browsers"]] == [
        (made["id"], "a kiosk")
    ]
    gone = await asyncio.to_thread(cli, "push", "remove", made["id"][:6])
    assert "a kiosk is notified no more" in gone.stderr
    assert await notified(gate, "dan") == []
    assert "Notify me in this browser" in (await asyncio.to_thread(cli, "push")).stderr
    await asyncio.to_thread(cli, "push", "remove", made["id"][:6], code=3)
