"""A host and its port, as people write them, IPv6 included."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cli import Cli
from vigil.broker import conf
from vigil.errors import InvalidInput
from vigil.net.endpoint import read_endpoint, shown_endpoint

HOSTS = st.one_of(
    st.ip_addresses(v=6).map(str), st.ip_addresses(v=4).map(str), st.just("mail.a.example")
)


@given(HOSTS, st.integers(1, 65535))
def test_what_is_written_together_is_read_apart(host: str, port: int) -> None:
    assert read_endpoint(shown_endpoint(host, port)) == (host, port)
    assert read_endpoint(host) == (host, 0)


BROKEN = "|a b|[::1|::1]|[a.example]:25|[::1]25|::1:x|a:0|a:65536|a:²|a:"


@pytest.mark.parametrize("text", BROKEN.split("|"))
def test_another_form_is_refused(text: str) -> None:
    """X-6: `::1:x` is no address, `[a.example]` no IPv6."""
    with pytest.raises(InvalidInput, match="is not HOST or HOST:PORT"):
        read_endpoint(text)


def test_a_mail_server_may_have_an_ipv6_address(tmp_path: Path) -> None:
    """D-2: with a port and without."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o600)
    cli = Cli(tmp_path / "home")
    servers = ("--smtp", "[fd00::1]:2525", "--imap", "fd00::1", "--rejects-forgeries")
    account = ("--address", "v@a.example", "--password-file", str(secret))
    cli("mail", "add", "post", *account, *servers)
    text = (tmp_path / "home/vigil.toml").read_text()
    assert 'smtp_host = "fd00::1"' in text
    assert "smtp_port = 2525" in text
    assert 'imap_host = "fd00::1"' in text


def test_the_nodes_of_a_cluster_may_have_ipv6_addresses() -> None:
    """O-2: the last group of an address is no port."""
    nodes = conf.nodes_of(["fd00::1", "fd00::2", "[fd00::3]:7000"])
    default = conf.nodes_of(["a", "b", "c"])[0].route_port
    assert [one.host for one in nodes] == ["fd00::1", "fd00::2", "fd00::3"]
    assert [one.route_port for one in nodes] == [default, default, 7000]
    assert conf.route(nodes[2], "s").endswith("@[fd00::3]:7000")
