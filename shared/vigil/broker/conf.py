"""The configuration of a broker: the embedded one, or nodes that Vigil doesn't start itself.

Nodes trust each other by one secret, which is part of every route's URL; people and services
never use it. All nodes of a cluster know the same users and have the same limits, so their files
differ by name and number only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import InvalidInput
from ..net.endpoint import read_endpoint, shown_endpoint
from ..outside import programs
from ..outside.programs import Outside
from ..settings.sections import Nats
from ..topology import ADMIN, PAYLOAD_BYTES_MAX, ROLES, permissions

PORT: Final = 4222
MONITOR_PORT: Final = 8222
ROUTE_PORT: Final = 6222
CLUSTER: Final = "vigil"
ROUTE_USER: Final = "route"
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - brokers for other machines; every user needs a key


def users(publics: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the broker's user list: one nkey each, and what it may do."""
    result: list[dict[str, Any]] = []
    for role in (ADMIN, *ROLES):
        allowed = permissions(role)
        result.append(
            {
                "nkey": publics[role],
                "permissions": {
                    "publish": {"allow": allowed["publish"], "deny": allowed["deny"]},
                    "subscribe": {"allow": allowed["subscribe"]},
                },
            }
        )
    return result


def configuration(
    nats: Nats,
    *,
    store: Path,
    port: int,
    publics: Mapping[str, str],
    outside: Iterable[Outside] = (),
) -> str:
    """Render nats-server's configuration (JSON is a subset of its format).

    `outside` are the credentials of outside programs, each of which is an account of its own.
    """
    return msgspec.json.format(
        msgspec.json.encode(
            {
                "server_name": "vigil",
                "host": "127.0.0.1",
                "port": port,
                "max_payload": PAYLOAD_BYTES_MAX,
                # Deliveries to a busy service wait in the server, not on a closed connection.
                "max_pending": 256 * 1024 * 1024,
                "jetstream": {
                    "store_dir": str(store),
                    "max_file_store": nats.max_file_bytes,
                    "max_memory_store": 512 * 1024 * 1024,
                    "sync_interval": "always" if nats.sync == "always" else "2m",
                },
                "accounts": programs.accounts(users(publics), outside),
            }
        ),
        indent=2,
    ).decode()


# ---------------------------------------------------------------- a cluster


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One server of a cluster: its name, and where the others reach it."""

    name: str
    host: str
    route_port: int = ROUTE_PORT


def nodes_of(hosts: Sequence[str]) -> list[Node]:
    """Name the nodes after their order.

    Args:
        hosts: ``HOST`` or ``HOST:PORT``, the port for the routes; an odd number of them, or two
            nodes that can't reach each other would both stop.

    Raises:
        InvalidInput: they can't make a cluster.

    >>> [node.name for node in nodes_of(["a", "b", "c:7000"])]
    ['nats-1', 'nats-2', 'nats-3']
    """
    if len(hosts) not in (3, 5):
        raise InvalidInput("node", f"a cluster has 3 or 5 nodes, not {len(hosts)}")
    if len(set(hosts)) != len(hosts):
        raise InvalidInput("node", "each must be named once")
    return [_node(f"nats-{number}", host) for number, host in enumerate(hosts, start=1)]


def _node(name: str, host: str) -> Node:
    address, port = read_endpoint(host, "node")
    return Node(name=name, host=address, **({"route_port": port} if port else {}))


class Users(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a broker knows: role -> public key, and outside programs."""

    publics: Mapping[str, str]
    outside: Sequence[Outside] = ()


def single(nats: Nats, users: Users, *, store: Path) -> str:
    """Render the configuration of a broker that listens to other machines.

    Reaching the port is not enough to use it: every connection needs one of our nkeys. Put TLS
    in front where the network isn't yours.
    """
    return _render(_common(nats, users, store))


def accounts(nats: Nats, users: Users) -> str:
    """Render only who may use a broker, for a configuration of one's own to include."""
    return _render({"accounts": _common(nats, users, Path())["accounts"]})


def clustered(
    nats: Nats, users: Users, *, store: Path, nodes: Sequence[Node], secret: str
) -> dict[str, str]:
    """Render the configuration of every node: name -> text."""
    common = _common(nats, users, store)
    return {
        node.name: _render(
            common | {"server_name": node.name, "cluster": _cluster(node, nodes, secret)}
        )
        for node in nodes
    }


def _common(nats: Nats, users: Users, store: Path) -> dict[str, Any]:
    text = configuration(nats, store=store, port=PORT, publics=users.publics, outside=users.outside)
    conf: dict[str, Any] = msgspec.json.decode(text)
    return conf | {"host": EVERYWHERE, "http": f"127.0.0.1:{MONITOR_PORT}"}


def _cluster(node: Node, nodes: Sequence[Node], secret: str) -> dict[str, Any]:
    return {
        "name": CLUSTER,
        "host": EVERYWHERE,
        "port": node.route_port,
        "authorization": {"user": ROUTE_USER, "password": secret},
        "routes": [route(other, secret) for other in nodes if other != node],
    }


def route(node: Node, secret: str) -> str:
    """Return the URL by which another node reaches this one."""
    return f"nats-route://{ROUTE_USER}:{secret}@{shown_endpoint(node.host, node.route_port)}"


def _render(conf: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(conf), indent=2).decode()
