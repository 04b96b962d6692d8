"""The console below a path of somebody's proxy: whatever a page names lies there, too."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

import httpx2
import pytest

from services.gateway.console.site import BESIDE, PAGES
from tests.support.console import HERE, Reader, Shown, link_of
from tests.support.gateway import WAIT_S, running_gateway
from tests.support.proxy import ROOT, running_proxy
from vigil import Client
from vigil.errors import InvalidInput
from vigil.settings.checks import read_public_url

BELOW: Final = f"{ROOT}/console"
NAMING: Final = ("href", "src", "action", "data-console", "hx-get", "hx-sse:connect", "data-live")


@pytest.mark.parametrize("leaves_out", [True, False])
async def test_whatever_a_page_names_is_below_the_path(tmp_path: Path, leaves_out: bool) -> None:
    async with (
        running_proxy(leaves_out=leaves_out) as proxy,
        running_gateway(tmp_path, public_url=proxy.url) as gate,
    ):
        proxy.gateway = gate.port
        async with httpx2.AsyncClient(timeout=WAIT_S) as client:
            for place in ("", "/"):
                typed = await client.get(proxy.url + place, headers={"accept": "text/html"})
                assert typed.headers["location"] == BELOW
            code = await link_of(gate, await gate.token("ann", is_admin=True))
            asked = await client.get(proxy.url + code)
            assert Shown(asked.text).forms[0]["action"] == f"{BELOW}/enter"
            fields = {"code": code.partition("=")[2]}
            heads = HERE | {"origin": proxy.url.removesuffix(ROOT)}
            entered = await client.post(f"{proxy.url}/console/enter", data=fields, headers=heads)
            assert entered.headers["location"] == BELOW
            assert f"; Path={BELOW};" in entered.headers["set-cookie"]
            client.base_url = httpx2.URL(proxy.url)
            reader = Reader(client)
            finished = await reader.did("/welcome", do="finish")
            assert finished.startswith(BELOW)
            for page in (*PAGES, *BESIDE) if leaves_out else PAGES[:2]:
                answer = await client.get(f"/console{page.path}")
                assert answer.status_code in (200, 503)  # what asks memory, which isn't there
                shown = Shown(answer.text)
                named = {
                    urljoin(f"{proxy.url}/console{page.path}", value)
                    for _, found in shown.tags
                    for name in NAMING
                    if (value := found.get(name))
                }
                strays = {one for one in named if not one.startswith(f"{proxy.url}/console")}
                assert strays == set(), page.path
            paused = await reader.did(
                "/pause", whose="mine", to="on", back=f"{BELOW}/inbox?state=open"
            )
            assert paused == f"{BELOW}/inbox?state=open&undo=pause/off"
            question = await client.post(
                "/console/pause", data={"whose": "all", "to": "on"}, headers=HERE
            )
            assert BELOW in Shown(question.text).links
            made = await reader.send("/timetable", do="link", name="phone")
            assert f"{proxy.url}/calendar/" in made.text
            manifest = (await client.get("/console/manifest.webmanifest")).json()
            assert {manifest[name] for name in ("id", "start_url", "scope")} == {BELOW}
            worker = await client.get("/console/worker.js")
            assert worker.headers["service-worker-allowed"] == BELOW
            for address in (manifest["icons"][0]["src"], manifest["shortcuts"][0]["url"]):
                found = await client.get(f"{proxy.url.removesuffix(ROOT)}{address}")
                assert found.status_code == 200, address
        token = await gate.token("ann")
        mine = await asyncio.to_thread(Client(proxy.url, token).me)
        assert mine["user"] == "ann"
        assert proxy.strays == []


@pytest.mark.parametrize(
    "url",
    [
        "home.example",
        "ftp://home.example",
        "https://home.example/api",
        "https://home.example/console/x",
        "https://home.example/a b",
        "https://home.example/../x",
        "https://home.example//x",
        "https://home.example/x?y",
        "https://me@home.example/x",
        "https://Home.example",
    ],
)
def test_an_address_that_cant_be_one_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="public_url"):
        read_public_url(url)


def test_no_path_of_the_gateway_can_be_the_proxys() -> None:
    """It would be left out of the path as the proxy's, and nothing be reached there any more."""
    for path in json.loads(Path("docs/openapi.json").read_text())["paths"]:
        with pytest.raises(InvalidInput, match="public_url"):
            read_public_url(f"https://home.example/{path.split('/')[1]}")
