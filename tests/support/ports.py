"""Ports of brokers, from below those that the system gives to whoever connects.

A broker keeps its port over restarts. While it is away, one of the many connections that tests
beside it make would otherwise take that port now and then.
"""

from __future__ import annotations

import random
import socket
from typing import Final

from vigil.broker import ports

PORTS: Final = range(12_000, 32_000)
_dice = random.SystemRandom()


def _free_port() -> int:
    while True:
        port = _dice.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def share() -> None:
    """Have the brokers of this process choose theirs so."""
    ports.free_port = _free_port
