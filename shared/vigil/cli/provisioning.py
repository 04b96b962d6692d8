"""What `vigil provision` does, for a broker that Vigil doesn't start itself.

A deployment runs it twice: once before the broker starts, to write the configuration with the
services' public keys and to hand each service its own seed; once after, to make the streams.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec

from vigil import broker, credentials
from vigil.config import Settings
from vigil.home import connect_admin, ensure_token
from vigil.topology import SERVICES

PORT: Final = 4222
MONITOR_PORT: Final = 8222


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted. `store` is a path of the machine that the broker runs on."""

    conf: Path | None
    store: Path
    seeds: Path | None
    has_broker: bool
    token_user: str | None


def carry_out(settings: Settings, plan: Plan) -> dict[str, str]:
    """Do it; return what was made.

    Raises:
        ConfigError, Unavailable: the broker can't be used; the message tells why.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    publics = credentials.ensure(settings.credentials)
    done = {"credentials": str(settings.credentials)}
    if plan.conf is not None:
        _write(plan.conf, nats_conf(settings, plan.store, publics).encode())
        done["nats_conf"] = str(plan.conf)
    if plan.seeds is not None:
        _hand_out(settings, plan.seeds)
        done["seeds"] = str(plan.seeds)
    if plan.has_broker:
        done |= asyncio.run(_prepare_broker(settings, plan.token_user))
    return done


def nats_conf(settings: Settings, store: Path, publics: dict[str, str]) -> str:
    """Render the configuration of a broker that listens to other machines.

    Reaching the port is not enough to use it: every connection needs one of our nkeys. Put TLS
    in front where the network isn't yours.
    """
    text = broker.configuration(settings.config.nats, store=store, port=PORT, publics=publics)
    conf: dict[str, Any] = msgspec.json.decode(text)
    conf |= {"host": "0.0.0.0", "http": f"127.0.0.1:{MONITOR_PORT}"}  # noqa: S104
    return msgspec.json.format(msgspec.json.encode(conf), indent=2).decode()


def _hand_out(settings: Settings, folder: Path) -> None:
    """Give each service a folder with its own seed and nobody else's."""
    for service in SERVICES:
        seed = credentials.load(settings.credentials, service)
        _write(folder / service / f"{service}.seed", seed)


def _write(path: Path, data: bytes) -> None:
    credentials.write_private(path, data)


async def _prepare_broker(settings: Settings, token_user: str | None) -> dict[str, str]:
    url = settings.config.nats.url
    admin = await connect_admin(settings, url)
    try:
        await broker.provision(admin, replicas=settings.config.nats.replicas)
        done = {"broker": url}
        if token_user is not None:
            done["token"] = await ensure_token(admin, settings, user=token_user)
        return done
    finally:
        await admin.close()
