"""The receiver of docs/webhooks.md, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec

from tests.delivery.test_webhook import SAID
from tests.support.delivery import until
from tests.support.receiver import SECRET
from vigil.broker.ports import free_port
from vigil.channels.answers import NotTaken, Taken
from vigil.channels.webhook import Webhook
from vigil.channels.webhook_sender import MessageSent, WebhookSender, body_of
from vigil.clock import SystemClock
from vigil.net.ssrf import Rules
from vigil.processes.process import start
from vigil.settings import config

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text("utf-8")


def example(language: str) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)
    return found[0]


async def test_the_receiver_takes_each_message_once_and_no_forged_one() -> None:
    """D-1, P-7"""
    port = free_port()
    environment = os.environ | {"PORT": str(port), "WEBHOOK_SECRET": SECRET}
    process = await start(
        sys.executable, "-u", "-c", example("python"), env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url, rules, clock = (
        f"http://127.0.0.1:{port}/",
        Rules(ports=(port,), allow_private=True),
        SystemClock(),
    )
    channel = WebhookSender(url, SECRET, rules, clock, timeout_s=5)
    forger = WebhookSender(url, f"{SECRET[:-4]}AAAA", rules, clock, timeout_s=5)
    try:

        async def is_taken() -> bool:
            return isinstance(await channel.send(SAID, 9), Taken)

        await until(is_taken, what="the receiver is there")
        assert isinstance(await channel.send(SAID, 9), Taken)
        refused = await forger.send(SAID, 9)
        assert isinstance(refused, NotTaken)
        assert refused.status == 401
    finally:
        await channel.close()
        await forger.close()
        process.kill()
        output, _ = await process.communicate()
    assert output.decode() == f"{SAID.session_key} {SAID.text}\n"


def test_the_body_and_the_settings_of_the_page_are_what_we_take() -> None:
    shown = msgspec.json.decode(example("json"))
    assert set(shown) == set(msgspec.json.decode(body_of(SAID, 1)))
    msgspec.convert(shown, MessageSent)
    settings = config.read(tomllib.loads(example("toml")))
    ops = settings.channels["ops"]
    assert isinstance(ops, Webhook)
    assert ops.url.startswith("https://")
