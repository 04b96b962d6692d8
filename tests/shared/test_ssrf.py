"""Where a request may go: RELIABILITY S9, every input of its table and some more."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import hypothesis.strategies as st
import pytest
from hypothesis import given

from vigil.net import ssrf
from vigil.net.ssrf import RequestRefused, Rules, Target

PUBLIC = "93.184.215.14"
OWN = Rules(ports=(80, 443, 9000), allow_private=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.1/",
        "http://127.0.0.1/",
        "http://0x7f000001/",
        "http://0X7F.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:93.184.215.14]/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fe80::1%25eth0]/",
        "http://[fc00::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://224.0.0.1/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://198.18.0.1/",
        "http://metadata.google.internal/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://printer.local/",
        "http://user@127.0.0.1/",
        "http://user:pass@hooks.example/",
        "http://hooks.example@127.0.0.1/",
        "http://127.0.0.1\\@hooks.example/",
        "http://hooks.example:22/",
        "http://hooks.example:4222/",
        "http://hooks.example:0/",
        "http://hooks.example:99999/",
        "http://hooks.example:x/",
        "http://höoks.example/",
        "http://hooks.example/a b",
        "http://hooks.example/\n",
        "http://-hooks.example/",
        "http://hooks..example/",
        "http://" + "a." * 200 + "example/",
        "http://" + "a" * 3000 + ".example/",
        "http:///nowhere",
        "http://",
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "ftp://hooks.example/",
        "//hooks.example/",
        "hooks.example",
        "",
        "http://[::1",
        "http://[hooks.example]/",
    ],
)
def test_it_leads_nowhere(url: str) -> None:
    """S9"""
    with pytest.raises(RequestRefused) as refused:
        ssrf.target_of(url, Rules())
    assert refused.value.field == "url"


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://hooks.example/in?x=1", "hooks.example", 443),
        ("http://HOOKS.example.:80/", "hooks.example", 80),
        ("https://xn--hks-eoa.example", "xn--hks-eoa.example", 443),
        ("https://93.184.215.14/", "93.184.215.14", 443),
        ("https://[2606:2800::6820:80da]/", "2606:2800::6820:80da", 443),
    ],
)  # fmt: skip
def test_it_leads_outside(url: str, host: str, port: int) -> None:
    """S9: what is public passes."""
    scheme = url.partition(":")[0]
    assert ssrf.target_of(url, Rules()) == Target(scheme=scheme, host=host, port=port)


@pytest.mark.parametrize(
    "url",
    ["http://localhost:9000/", "http://127.0.0.1:9000", "http://[::1]:9000/", "http://10.1.2.3/",
     "http://nas.local/", "http://[fd00::1]/"],
)  # fmt: skip
def test_ones_own_receivers_pass_where_they_may(url: str) -> None:
    """S9: allow_private"""
    ssrf.target_of(url, OWN)
    with pytest.raises(RequestRefused):
        ssrf.target_of(url, Rules(ports=OWN.ports))


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0/", "http://[::]/",
     "http://224.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://127.1/", "http://2130706433/",
     "http://user@127.0.0.1/", "http://localhost:22/", "http://100.100.100.200/",
     "http://168.63.129.16/", "http://[fd00:ec2::254]/", "http://[fd20:ce::254]/",
     "http://[fd00:ec2::254%25eth0]/"],
)  # fmt: skip
def test_what_never_passes(url: str) -> None:
    """S9: nobody's receiver is there, so allow_private doesn't open it."""
    with pytest.raises(RequestRefused):
        ssrf.target_of(url, OWN)


def test_the_port_of_the_broker_never_passes() -> None:
    """S9: not on this machine, not under its name, not elsewhere."""
    rules = Rules(ports=(4222,), ports_never=(4222,), allow_private=True)
    for host in ("127.0.0.1", "localhost", "[::1]", "broker.example"):
        with pytest.raises(RequestRefused, match="port 4222"):
            ssrf.target_of(f"http://{host}:4222/", rules)


@pytest.mark.parametrize(
    "addresses",
    [[], ["127.0.0.1"], [PUBLIC, "127.0.0.1"], [PUBLIC, "::1"], ["fe80::1%eth0"], ["nonsense"],
     ["169.254.169.254"], ["::ffff:10.0.0.1"], ["64:ff9b::a00:1"]],
)  # fmt: skip
def test_one_bad_address_refuses_the_host(addresses: list[str]) -> None:
    """S9: every address of an answer is judged."""
    with pytest.raises(RequestRefused):
        ssrf.judge_addresses(addresses, Rules())


def test_the_addresses_that_pass_are_those_to_connect_to() -> None:
    found = ssrf.judge_addresses([PUBLIC, "2606:2800::1", PUBLIC], Rules())
    assert found == [PUBLIC, "2606:2800::1"]


@given(st.ip_addresses(v=4))
def test_no_address_of_the_standard_library_is_overlooked_4(address: IPv4Address) -> None:
    """S9: what Python knows as special is never called public."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert ssrf.reach_of(address) != "public"


@given(st.ip_addresses(v=6))
def test_no_address_of_the_standard_library_is_overlooked_6(address: IPv6Address) -> None:
    """S9: what Python knows as special is never called public."""
    if not address.is_global or address.is_multicast or address.sixtofour or address.teredo:
        assert ssrf.reach_of(address) != "public"
    if address.ipv4_mapped is not None:
        assert ssrf.reach_of(address) == "never"


@given(st.text(max_size=60))
def test_nothing_else_comes_out_of_nonsense(text: str) -> None:
    """X-6: an answer or a refusal, never another error."""
    for url in (text, f"http://{text}", f"http://{text}/", f"http://a:{text}"):
        try:
            target = ssrf.target_of(url, Rules())
        except RequestRefused:
            continue
        assert target.port in ssrf.WEB_PORTS
