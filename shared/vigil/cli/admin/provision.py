"""`provision`: what a broker needs that Vigil doesn't start itself.

A deployment runs it twice: once before the broker starts, to write the configuration with the
services' public keys and to hand each service its own seed; once after, to make the streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vigil.errors import ConfigError
from vigil.settings import config, credentials
from vigil.settings.config import Settings
from vigil.topology import SERVICES

from .. import output
from ..tables import Result
from . import operator

if TYPE_CHECKING:
    from vigil.broker import conf as nats_conf
    from vigil.bus.bus import Bus


def provision(
    credentials_only: Annotated[
        bool, typer.Option("--credentials-only", help="Make credentials; need no broker.")
    ] = False,
    write_nats_conf: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Write nats-server's configuration: a file; with --node, a folder."
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="A node of a cluster, as the others reach it; give it 3 or 5 times.",
        ),
    ] = None,
    write_nats_accounts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write only who may use it, for deploy/nats.conf."),
    ] = None,
    store: Annotated[
        Path, typer.Option(help="For that configuration: where the server keeps its data.")
    ] = Path("/data/jetstream"),
    seeds_out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Copy each service's seed to DIR/SERVICE/."),
    ] = None,
    token_user: Annotated[
        str | None,
        typer.Option(metavar="USER", help="Make an admin token once, keep and print it."),
    ] = None,
) -> Result:
    """Prepare a broker of your own: credentials, streams and buckets. May be run again."""
    settings = config.load()
    if token_user is not None and credentials_only:
        raise typer.BadParameter("--token-user needs the broker, --credentials-only avoids it")
    if node and write_nats_conf is None:
        raise typer.BadParameter("--node needs --write-nats-conf: the folder for its files")
    if not credentials_only and not settings.config.nats.url:
        raise ConfigError("set NATS_URL to the broker to prepare, or use --credentials-only")
    done = _write_files(
        settings,
        conf=write_nats_conf,
        accounts=write_nats_accounts,
        nodes=node or (),
        store=store,
        seeds=seeds_out,
    )
    if not credentials_only:
        done |= operator.run_as_admin(
            settings, lambda admin: _prepare_broker(admin, settings, token_user)
        )
    text = "\n".join(f"{name}  {value}" for name, value in done.items())
    return Result(done, partial(output.data, text))


def _write_files(
    settings: Settings,
    *,
    conf: Path | None,
    accounts: Path | None,
    nodes: Sequence[str],
    store: Path,
    seeds: Path | None,
) -> dict[str, str]:
    """Make the credentials, and write what is wanted of them; return where it is.

    Args:
        conf: with `nodes` (``HOST`` or ``HOST:PORT``), a folder that gets a file for each.
        store: a path of the machine that the broker runs on.

    Raises:
        InvalidInput: the nodes can't be a cluster.
    """
    from vigil.broker import conf as nats_conf

    members = nats_conf.nodes_of(nodes) if nodes else []
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    publics = credentials.ensure(settings.credentials)
    done = {"credentials": str(settings.credentials)}
    outside = credentials.outside(settings.credentials)
    users = nats_conf.Users(publics=publics, outside=outside)
    if accounts is not None:
        _write(accounts, nats_conf.accounts(settings.config.nats, users).encode())
        done["nats_accounts"] = str(accounts)
    if conf is not None:
        _write_conf(settings, conf, store, users, members)
        done["nats_conf"] = str(conf)
    if seeds is not None:
        _hand_out(settings, seeds)
        done["seeds"] = str(seeds)
    return done


def _write_conf(
    settings: Settings,
    path: Path,
    store: Path,
    users: nats_conf.Users,
    nodes: Sequence[nats_conf.Node],
) -> None:
    from vigil.broker import conf as nats_conf

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
    from vigil.broker.provision import provision, provision_outside
    from vigil.local.home import ensure_token

    nats = settings.config.nats
    await provision(admin, settings.config.retention, nats)
    await provision_outside(admin, credentials.outside(settings.credentials))
    done = {"broker": nats.url}
    if token_user is not None:
        done["token"] = await ensure_token(admin, settings, user=token_user)
    return done
