"""Brokers that tests share."""

from __future__ import annotations

import socket
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support import lent, provisioned
from vigil.broker import ports
from vigil.settings.sections import Retention


async def test_a_port_that_another_took_meanwhile_costs_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await provisioned.stored(Retention())  # this takes a port of its own
    monkeypatch.setattr(lent, "_servers", defaultdict(list))
    with socket.create_server(("127.0.0.1", 0)) as other:
        free, taken = ports.free_port, [other.getsockname()[1]]
        monkeypatch.setattr(ports, "free_port", lambda: taken.pop() if taken else free())
        async with lent.lent(tmp_path) as account:
            assert account.port != other.getsockname()[1]
            await (await account.admin()).close()
        assert taken == []
    for servers in lent._servers.values():
        for server in servers:
            lent._end(server)
