"""What `vigil doctor` says of the ways in and out: channels, hooks, metrics, a cluster.

By the configuration and the files that it names; nobody is called, no name is looked up. A
secret is never shown.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

from ..channels.contract import Channel
from ..checks import Check, fail, of_secret, ok, warn
from ..errors import InvalidInput
from ..fields import secrets
from ..net.endpoint import shown_endpoint
from ..settings.config import Settings
from ..settings.sections import Hook

Examine = Callable[[Settings], Check | None]
"""Examines one thing and changes nothing; None: nobody has set it up."""


def checks(settings: Settings) -> dict[str, Examine]:
    """Return the checks of what is set up, by name."""
    of_channels = {
        f"channel {name}": partial(_channel, channel)
        for name, channel in settings.config.channels.items()
    }
    of_hooks = {
        f"hook {name}": partial(_hook, hook) for name, hook in settings.config.hooks.items()
    }
    return of_channels | of_hooks | {"metrics": metrics, "replicas": replicas}


# ---------------------------------------------------------------- in and out


def _channel(channel: Channel, settings: Settings) -> Check | None:
    return channel.examine(settings.home)


def _hook(hook: Hook, settings: Settings) -> Check:
    home = settings.home
    try:
        secrets.of_section("secrets", "\n".join(hook.secrets), hook.secrets_file, home)
    except InvalidInput as error:
        return fail(str(error), "set secrets, or secrets_file with one on each line")
    if (found := of_secret(home, hook.secrets_file)) is not None:
        return found
    return ok(f"into {hook.user}:{hook.agent}:{hook.thread}, {hook.scheme} signatures")


# ---------------------------------------------------------------- operation


def metrics(settings: Settings) -> Check | None:
    """Whether the port is free, and who can reach it."""
    host, port = settings.config.metrics.host, settings.config.metrics.port
    if not port:
        return None
    where = shown_endpoint(host, port)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        advice = "a service may have it already; each one here needs its own: VIGIL_METRICS__PORT"
        return warn(f"{where} is taken ({error.strerror or error})", advice)
    if not _is_loopback(host):
        return warn(f"{where} is for everybody who can reach it", "keep it inside")
    return ok(f"{where} is free")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def replicas(settings: Settings) -> Check | None:
    """Whether there are as many copies as the nodes of a cluster can hold."""
    copies = settings.config.nats.replicas
    nodes = len(settings.config.nats.url.split(",")) if settings.config.nats.url else 0
    if copies == 1:
        found = f"{nodes} nodes, and 1 replica of everything"
        return warn(found, "VIGIL_NATS__REPLICAS=3, then `vigil provision`") if nodes > 1 else None
    if not nodes:
        found = f"{copies} replicas, and the embedded broker is one node"
        return fail(found, "set NATS_URL to a cluster, or nats.replicas to 1")
    if copies % 2 == 0:
        return warn(f"{copies}: no safer than one less", "use 3 or 5")
    return ok(f"{copies} of everything")
