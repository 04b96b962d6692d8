"""The newcomer's path without a terminal after `up`, in a real Chromium.

The link, the first page, the first answer; a reminder that comes as a notification with every page
closed; and a request that is accepted in it. All of it goes through a proxy that has the gateway
below a path: nothing may lead beside that. There is no push service but the test's own: what Vigil
sends it is opened with the browser's keys, and handed to the real service worker by the developer
tools. The press on a notification is a call of the worker's own function for it, since no protocol
presses one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import chromium
from tests.support.chat_api import chat_api
from tests.support.chromium import Tab
from tests.support.gateway import WAIT_S, until
from tests.support.obedient import obey
from tests.support.proxy import ROOT, running_proxy
from tests.support.push_browsers import PushedBrowser, channel_of
from tests.support.receiver import running_receiver, status
from tests.support.world import World, running_world
from vigil.channels.push import subscriptions
from vigil.clock import SystemClock
from vigil.local import model_servers
from vigil.settings.live import followed

pytestmark = pytest.mark.skipif(
    chromium.binary(chromium.WHOLE) is None, reason="there is no Chromium here"
)
SUBSCRIBED: Final = """(() => {{
    const said = {made};
    const made = {{ ...said, toJSON: () => said, options: {{ applicationServerKey: null }} }};
    PushManager.prototype.getSubscription = async () => localStorage.isSubscribed ? made : null;
    PushManager.prototype.subscribe = async (wanted) => {{
        if (!wanted.userVisibleOnly || wanted.applicationServerKey.length !== 65) throw new Error();
        localStorage.isSubscribed = 1;
        return made;
    }};
}})()"""
"""Has a browser subscribe with keys of ours: a real one would ask a service of its maker's."""
SHOWN: Final = """registration.getNotifications().then((all) => all.map((one) => ({
    id: one.tag, at: one.timestamp, title: one.title, body: one.body, silent: one.silent,
    actions: one.actions.map((it) => it.action),
})))"""
SEEN: Final = """clients.matchAll({ type: "window", includeUncontrolled: true }).then((all) =>
    JSON.stringify(all.map((one) => [one.url, one.focused, one.visibilityState])))"""
OVERLAP: Final = """(async () => {{
    const told = {told}, opened = caches.open.bind(caches);
    let release, isFirst = true;
    const held = new Promise((done) => {{ release = done; }});
    caches.open = async (name) => {{
        if (isFirst) {{ isFirst = false; await held; }}
        return opened(name);
    }};
    const late = show(told);
    await new Promise((done) => setTimeout(done, 100));
    await show(told);
    release();
    await late;
    caches.open = opened;
}})()"""
"""The same comes twice, and the second is shown while the first one is looked at."""
TRIES: Final = 3
WINDOWS: Final = 'clients.matchAll({ type: "window" }).then((all) => all.length)'
REMIND: Final = (
    'do: schedule_followup {"delay_seconds": 1, "keep": true, "message": "Time to stretch!", '
    '"reason": "they asked"}'
)


async def test_from_the_link_to_a_decision_in_a_notification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "POLL_S", 0.05)
    async with (
        running_receiver(status(201, "Created")) as service,
        chat_api(obey) as thinker,
        running_proxy() as proxy,
    ):
        monkeypatch.setattr(model_servers, "USUAL", {"Ollama": thinker.port})
        sections: dict[str, dict[str, Any]] = {
            "channels": {"push": channel_of(service)},
            "autonomy": {"cooldown_ms": 0},
            "gateway": {"public_url": proxy.url},
        }
        home, clock = tmp_path / "home", SystemClock()
        async with running_world(
            home, monkeypatch, clock, has_agent=False, has_hands=True, **sections
        ) as world:
            browser, proxy.gateway = PushedBrowser(service), world.gate.port
            async with chromium.opened(tmp_path / "profile", notifies=True) as tab:
                await arrive(world, tab, browser, proxy.url)
                await hear(tab, browser, tmp_path / "profile", proxy.url)
                await decide(world, tab, browser, tmp_path / "profile", proxy.url)
                assert tab.complaints == []
                await leave(world, tab)
                assert proxy.strays == []


async def arrive(world: World, tab: Tab, browser: PushedBrowser, url: str) -> None:
    """By the link to the first page, through it, and to the first answer."""
    origin = url.removesuffix(ROOT)
    await tab.look()
    await tab.call("Emulation.setTimezoneOverride", timezoneId="Europe/Vienna")
    await tab.call("Browser.grantPermissions", origin=origin, permissions=["notifications"])
    made = json.dumps({"endpoint": browser.endpoint, "keys": browser.keys})
    source = SUBSCRIBED.format(made=made)
    await tab.call("Page.addScriptToEvaluateOnNewDocument", source=source)
    link = await public_link(world)
    assert link.startswith(f"{url}/console/enter?code=")
    await tab.go(link)
    await tab.press("form button")
    assert await tab.run("location.pathname") == "/vigil/console/welcome"
    assert await tab.run("document.querySelector('[name=timezone]').value") == "Europe/Vienna"
    await tab.type("[name=called]", "Mia")
    await tab.press("form[action$='#you'] button")
    assert "Set." in await tab.text()
    assert "qwen3:8b of Ollama on this machine" in await tab.text()
    await tab.press("form[action$='#model'] button")
    assert "thinks from now on" in await tab.text()
    facts = world.stack.contexts["cortex"].facts
    await world.until(lambda: facts["model"] == "qwen3:8b")
    await tab.press("button[name=push]")
    await tab.until("document.body.innerText.includes('Notified: Chrome on Linux')")
    await tab.press("button[value=finish]")
    assert await tab.run("location.pathname") == "/vigil/console/conversations/me:vigil:main"
    await tab.until("document.activeElement.name === 'text'")
    await tab.call("Input.insertText", text=REMIND)
    await tab.enter()
    await tab.until("document.querySelector('article.assistant') !== null")
    await tab.go("about:blank")


async def hear(tab: Tab, browser: PushedBrowser, profile: Path, url: str) -> None:
    """With every page closed; what comes twice is shown once, a press opens its conversation."""
    await browser.receiver.arrived(1)
    told = browser.shown[0]
    assert browser.requests[0].headers["urgency"] == "high"
    await tab.call("ServiceWorker.enable")
    await tab.call("ServiceWorker.startWorker", scopeURL=f"{url}/console")
    async with chromium.service_worker(profile) as worker:

        async def is_closed() -> bool:  # what somebody looks at isn't shown once more
            return int(await worker.run(WINDOWS)) == 0

        await until(is_closed, "no page is open")
        await take_in(worker, url, tab, told)
        (first,) = await shown(worker, lambda found: len(found) == 1)
        assert (first["title"], first["body"]) == ("vigil", "Time to stretch!")
        assert (first["silent"], first["actions"]) == (True, [])

        async def is_again() -> bool:
            found: list[Any] = await worker.run(SHOWN)
            return [one["at"] > first["at"] for one in found] == [True]

        await deliver_until(worker, url, tab, told, is_again)
        led = await worker.run("""(async () => {
            const found = [];
            clients.openWindow = async (url) => { found.push(url); };
            await clicked((await registration.getNotifications())[0], "");
            return found;
        })()""")
        assert led == [f"{url}/console/conversations/me:vigil:main#end"]
        await shown(worker, lambda found: found == [])
        await deliver(url, tab, told)  # late, once more: it was put away
        await take_in(worker, url, tab, told | {"id": "another"})
        await shown(worker, lambda found: [one["id"] for one in found] == ["another"])
        await worker.run("registration.getNotifications().then((all) => all[0].close())")
        await shown(worker, lambda found: found == [])
        await worker.run(OVERLAP.format(told=json.dumps(told | {"id": "both"})))
        await shown(worker, lambda found: [one["id"] for one in found] == ["both"])
        await worker.run("registration.getNotifications().then((all) => all[0].close())")
        await shown(worker, lambda found: found == [])


async def decide(world: World, tab: Tab, browser: PushedBrowser, profile: Path, url: str) -> None:
    """A request shows its exact arguments; one press runs it, and no other counts."""
    talk = world.talk("me:vigil:main")
    await talk.outside('do: shell {"command": "echo done"}')
    told: dict[str, Any] = {}

    async def is_asked() -> bool:  # what else is said of it may come first
        told.update(next((one for one in browser.shown if one["request"]), {}))
        return bool(told)

    await until(is_asked, "leave is asked for")
    api = await world.gate.person("me", is_admin=True)

    async def is_accepted() -> bool:
        found = (await api.get(f"/api/approvals/{told['request']['id']}")).json()
        return bool(found["state"] == "accepted" and found["call_id"])

    async with chromium.service_worker(profile) as worker:
        await take_in(worker, url, tab, told)
        (asked,) = await shown(worker, lambda found: len(found) == 1)
        assert asked["title"] == "vigil asks: shell"
        assert '| command: "echo done"' in asked["body"]
        assert asked["actions"] == ["accept", "reject"]
        await worker.run("registration.getNotifications().then((all) => clicked(all[0], 'accept'))")
        await until(is_accepted, "the request is accepted")
        await shown(worker, lambda found: found == [])
        await worker.run(f"decide({json.dumps(told)}, 'reject')")
        (late,) = await shown(worker, lambda found: len(found) == 1)
        assert late["body"].startswith("Not decided: it was accepted by me at ")
        assert late["actions"] == []
        # An answer that is lost says nothing of what was decided: the same may be pressed again.
        await worker.run(f"""(async () => {{
            const fetched = fetch;
            fetch = async (...asked) => {{ await fetched(...asked); throw new TypeError("gone"); }};
            await decide({json.dumps(told)}, "accept");
            fetch = fetched;
        }})()""")
        (unknown,) = await shown(worker, lambda found: [bool(it["actions"]) for it in found] == [1])
        assert unknown["body"].startswith("Vigil doesn't answer, so it isn't known")
        assert '| command: "echo done"' in unknown["body"]
        await worker.run("registration.getNotifications().then((all) => clicked(all[0], 'accept'))")
        await shown(worker, lambda found: found == [])


async def leave(world: World, tab: Tab) -> None:
    """Signed in anew, as after a week: who signs out then is notified no more."""
    api = await world.gate.person("me", is_admin=True)
    (before,) = (await api.get("/api/console/browsers")).json()["browsers"]
    await tab.go(await public_link(world))
    await tab.press("form button")

    async def is_settled() -> bool:
        found = await subscriptions.everybodys(world.gate.admin)
        return [one.subscription.browser_id != before["id"] for one in found] == [True]

    await until(is_settled, "the browser goes with this sign-in")
    await tab.press("form[action$='/leave'] button")
    assert await subscriptions.everybodys(world.gate.admin) == []


async def public_link(world: World) -> str:
    """Return a new link, as `up` prints it."""
    api = await world.gate.person("me", is_admin=True)
    return str((await api.post("/api/console/links")).json()["url"])


async def deliver(url: str, tab: Tab, told: dict[str, Any]) -> None:
    """Hand a message to the service worker, as the browser does with what it opened."""
    await tab.call("ServiceWorker.enable")
    scope = f"{url}/console"

    async def is_active() -> bool:
        return tab.registrations.get(scope) in tab.active

    await until(is_active, "the worker takes what is pushed")
    await tab.call(
        "ServiceWorker.deliverPushMessage",
        origin=url.removesuffix(ROOT),
        registrationId=tab.registrations[scope],
        data=json.dumps(told),
    )


async def take_in(worker: Tab, url: str, tab: Tab, told: dict[str, Any]) -> None:
    """Hand a message to the service worker until it took it, shown or not."""
    taken = partial(worker.run, f"isKnown({json.dumps(told['id'])})")
    await deliver_until(worker, url, tab, told, taken)


async def deliver_until(
    worker: Tab, url: str, tab: Tab, told: dict[str, Any], check: Callable[[], Awaitable[bool]]
) -> None:
    """Hand a message to the service worker until something came of it: on a busy machine nothing
    did, twice in some ten runs of all tests. A push service tells it again, too."""
    for _ in range(TRIES):
        await deliver(url, tab, told)
        with contextlib.suppress(TimeoutError):
            await until(check, "something comes of it", WAIT_S / TRIES)
            return
    raise AssertionError(f"nothing came of it; {await worker.run(SEEN)}")


async def shown(worker: Tab, holds: Callable[[list[Any]], bool]) -> list[Any]:
    """Wait until the notifications are so, and return them."""
    found: list[Any] = []

    async def check() -> bool:
        found[:] = await worker.run(SHOWN)
        return holds(found)

    try:
        await until(check, "the notifications are as they should be")
    except TimeoutError as error:
        raise AssertionError(f"shown: {found}; {await worker.run(SEEN)}") from error
    return found
