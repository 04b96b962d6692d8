"""What `vigil provision` does, for a broker that Vigil doesn't start itself.

A deployment runs it twice: once before the broker starts, to write the configuration with the
services' public keys and to hand each service its own seed; once after, to make the streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from vigil.broker import conf as nats_conf
from vigil.broker.provision import provision, provision_outside
from vigil.bus.bus import Bus
from vigil.local.home import ensure_token
from vigil.settings import credentials
from vigil.settings.config import Settings
from vigil.topology import SERVICES

from . import operator


class Provisioning(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted. `store` is a path of the machine that the broker runs on.

    With `nodes` (``HOST`` or ``HOST:PORT``), `conf` is a folder that gets a file for each.
    """

    conf: Path | None
    accounts: Path | None
    nodes: tuple[str, ...]
    store: Path
    seeds: Path | None
    has_broker: bool
    token_user: str | None


def carry_out(settings: Settings, plan: Provisioning) -> dict[str, str]:
    """Do it; return what was made.

    Raises:
        InvalidInput: the nodes can't be a cluster.
        ConfigError, Unavailable: the broker can't be used; the message tells why.
    """
    nodes = nats_conf.nodes_of(plan.nodes) if plan.nodes else []
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    publics = credentials.ensure(settings.credentials)
    done = {"credentials": str(settings.credentials)}
    outside = credentials.outside(settings.credentials)
    users = nats_conf.Users(publics=publics, outside=outside)
    if plan.accounts is not None:
        _write(plan.accounts, nats_conf.accounts(settings.config.nats, users).encode())
        done["nats_accounts"] = str(plan.accounts)
    if plan.conf is not None:
        _write_conf(settings, plan.conf, plan.store, users, nodes)
        done["nats_conf"] = str(plan.conf)
    if plan.seeds is not None:
        _hand_out(settings, plan.seeds)
        done["seeds"] = str(plan.seeds)
    if plan.has_broker:
        done |= operator.run_as_admin(
            settings, lambda admin: _prepare_broker(admin, settings, plan.token_user)
        )
    return done


def _write_conf(
    settings: Settings,
    path: Path,
    store: Path,
    users: nats_conf.Users,
    nodes: Sequence[nats_conf.Node],
) -> None:
    nats = settings.config.nats
    if not nodes:
        _write(path, nats_conf.single(nats, users, store=store).encode())
        return
    secret = credentials.cluster_secret(settings.credentials)
    texts = nats_conf.clustered(nats, users, store=store, nodes=nodes, secret=secret)
    for name, text in texts.items():
        _write(path / f"{name}.conf", text.encode())


def _hand_out(settings: Settings, folder: Path) -> None:
    """Give each service a folder with its own seed and nobody else's."""
    for service in SERVICES:
        seed = credentials.load(settings.credentials, service)
        _write(folder / service / f"{service}.seed", seed)


def _write(path: Path, data: bytes) -> None:
    credentials.write_private(path, data)


async def _prepare_broker(admin: Bus, settings: Settings, token_user: str | None) -> dict[str, str]:
    nats = settings.config.nats
    await provision(admin, settings.config.retention, replicas=nats.replicas)
    await provision_outside(admin, credentials.outside(settings.credentials))
    done = {"broker": nats.url}
    if token_user is not None:
        done["token"] = await ensure_token(admin, settings, user=token_user)
    return done
