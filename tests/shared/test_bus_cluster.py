"""The bus against a cluster of three: what is different from a broker that stands alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.cluster import SIZE, STREAM_NAMES, Cluster
from tests.support.examples import repeats
from tests.support.pauses import pauses
from vigil.broker.provision import provision
from vigil.bus.buckets import create_bucket
from vigil.bus.bus import Ack, Bus, Follower
from vigil.bus.lease import BUCKET, Leases
from vigil.errors import Unavailable, WrongLastSequence
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey
from vigil.topology import CONSUMERS, WAKE

RACES = repeats(400, fast=12)
"""A wildcard overlooked a write under way in 247 of 400, before all writers named the same one."""
GAP_S = 15.0
"""An election takes up to 9 s."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests of this page: it takes seconds to start."""
    folder = tmp_path_factory.mktemp("cluster")
    made = Cluster(folder / "nats", folder / "home")
    try:
        asyncio.run(made.start())
        yield made
    finally:
        made.stop()


@pytest.fixture
async def admin(cluster: Cluster) -> AsyncIterator[Bus]:
    bus = await cluster.admin()
    await cluster.whole(bus)
    yield bus
    await bus.close()


@pytest.fixture
def key(request: pytest.FixtureRequest) -> SessionKey:
    """A session of the test's own."""
    return SessionKey("ann", "vigil", f"t{abs(hash(request.node.name))}")


async def test_everything_has_three_replicas(cluster: Cluster, admin: Bus) -> None:
    """ARCHITECTURE 2: streams, buckets and durable consumers; leases stay in memory."""
    await provision(admin, nats=Nats(replicas=SIZE))
    for name in STREAM_NAMES:
        config = (await admin.api(f"STREAM.INFO.{name}", {}))["config"]
        assert config["num_replicas"] == SIZE, name
        assert config["storage"] == ("memory" if name == f"KV_{BUCKET}" else "file"), name
    for consumer in CONSUMERS:
        info = await admin.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", {})
        assert len(info["cluster"]["replicas"]) == SIZE - 1, consumer.name


async def test_leases_that_are_gone_come_back_with_all_replicas(admin: Bus) -> None:
    """What services create again is what `provision` made."""
    before = (await admin.api(f"STREAM.INFO.KV_{BUCKET}", {}))["config"]
    await admin.api(f"STREAM.DELETE.KV_{BUCKET}", {})
    lease = await Leases(admin, "one", replicas=SIZE).acquire("vigil.ann.t1")
    assert lease is not None
    await lease.release()
    after = (await admin.api(f"STREAM.INFO.KV_{BUCKET}", {}))["config"]
    assert after["num_replicas"] == SIZE
    assert {k: v for k, v in after.items() if k != "metadata"} == {
        k: v for k, v in before.items() if k != "metadata"
    }
    await create_bucket(admin, BUCKET, replicas=SIZE)


async def test_any_node_of_the_list_will_do(cluster: Cluster) -> None:
    """P-3: NATS_URL names several; those that don't answer are passed over."""
    urls = ["nats://127.0.0.1:1", *cluster.url.split(",")]
    for _ in range(5):
        bus = await cluster.admin(" , ".join(urls))
        assert bus.is_cluster
        await bus.close()


@pytest.mark.repeated
async def test_of_writes_under_way_one_comes_first(
    cluster: Cluster, admin: Bus, key: SessionKey
) -> None:
    """S-4: until a write is settled the leader refuses the others without saying who won. Turns
    for different services, of replicas connected to different nodes, expect the same wildcard."""
    buses = [await cluster.admin(cluster.url_of(name)) for name in cluster.servers]
    letters = ("", "s", "tm")
    expect = 0

    async def write(bus: Bus, letters: str) -> int:
        try:
            ack = await bus.publish(
                key.turn_for(letters), b"x", expect=expect, expect_subject=key.turns
            )
        except WrongLastSequence:
            return 0
        return ack.seq

    for _ in range(RACES):
        writes = (write(bus, letters[n % 3]) for n, bus in enumerate((*buses, buses[0])))
        won = [seq for seq in await asyncio.gather(*writes) if seq]
        assert len(won) == 1
        last = await admin.get_last("SESSIONS", key.turns)
        assert last is not None
        assert last.seq == won[0]
        expect = won[0]
    for bus in buses:
        await bus.close()


async def test_the_same_message_under_way_twice_is_stored_once(
    cluster: Cluster, key: SessionKey
) -> None:
    """S-10: all who send it are told where it lies."""
    buses = [await cluster.admin(cluster.url_of(name)) for name in cluster.servers]

    async def write(bus: Bus, number: int) -> Ack:
        return await bus.publish(key.in_user, b"x", msg_id=f"{key}-{number}")

    for number in range(20):
        acks = await asyncio.gather(*(write(bus, number) for bus in buses * 2))
        assert len({ack.seq for ack in acks}) == 1
        assert sum(not ack.is_duplicate for ack in acks) == 1
    for bus in buses:
        await bus.close()


@pytest.mark.repeated
async def test_no_claim_is_stored_behind_a_message_of_the_person(
    cluster: Cluster, key: SessionKey
) -> None:
    """S-6: in all races, whichever node either of them is connected to."""
    buses = [await cluster.admin(cluster.url_of(name)) for name in cluster.servers]
    won = 0

    async def claim(session: SessionKey, bus: Bus, fence: int, number: int) -> int:
        try:
            ack = await bus.publish(
                session.out_said(f"e{number}"), b"", expect=fence,
                expect_subject=session.transcript,
            )  # fmt: skip
        except WrongLastSequence:
            return 0
        return ack.seq

    for race in range(RACES):
        session = SessionKey(key.user, key.agent, f"{key.thread}_{race}")
        fence = (await buses[0].publish(session.in_user, b"")).seq
        newer, *claims = await asyncio.gather(
            buses[1].append(session.in_user, b"", among=session.transcript, msg_id=str(session)),
            *(claim(session, bus, fence, number) for number, bus in enumerate(buses)),
        )
        accepted = [seq for seq in claims if seq]
        assert len(accepted) <= 1
        assert all(seq < newer.seq for seq in accepted)
        won += len(accepted)
    assert won > 0
    for bus in buses:
        await bus.close()


async def test_a_message_of_the_person_is_never_refused(
    cluster: Cluster, admin: Bus, key: SessionKey
) -> None:
    """S-6, I3: however much is said meanwhile; and a repeat is told where it lies."""
    buses = [await cluster.admin(cluster.url_of(name)) for name in cluster.servers]

    async def say(bus: Bus, number: int) -> Ack:
        return await bus.append(
            key.in_user, b"", among=key.transcript, msg_id=f"{key.thread}-{number}"
        )

    for number in range(20):
        await admin.publish(key.out_said(f"e{number}"), b"")
        acks = await asyncio.gather(*(say(bus, number) for bus in buses))
        assert len({ack.seq for ack in acks}) == 1
    for bus in buses:
        await bus.close()


async def test_what_was_acknowledged_is_read(cluster: Cluster, admin: Bus, key: SessionKey) -> None:
    """A consumer may sit on a node that is behind; a reading must not end there."""
    leader = await cluster.leader(admin, "SESSIONS")
    late = next(server for name, server in cluster.servers.items() if name != leader)
    bus = await cluster.admin(cluster.url_of(leader))
    late.pause()
    try:
        data = b"x" * 50_000
        acks = await asyncio.gather(*(bus.publish(key.in_user, data) for _ in range(200)))
    finally:
        late.unpause()
    stored = sorted(ack.seq for ack in acks)
    for reading in await asyncio.gather(
        *(bus.read("SESSIONS", [key.in_user], stored[-20]) for _ in range(12))
    ):
        assert [message.seq for message in reading] == stored[-20:]
    some, has_more = await bus.page("SESSIONS", [key.in_user], limit=3)
    assert ([m.seq for m in some], has_more) == (stored[:3], True)
    assert await bus.read("SESSIONS", [key.in_user], stored[-1] + 1) == []
    await bus.close()


async def _host_of(bus: Bus, follower: Follower) -> str:
    info = await bus.api(f"CONSUMER.INFO.SESSIONS.{follower._consumer}", {})
    return str(info["cluster"]["leader"])


async def test_a_follower_outlives_the_node_that_hosts_it(
    cluster: Cluster, admin: Bus, key: SessionKey
) -> None:
    """X-5: its connection lives on, so silence tells; it goes on without gap or repeat."""
    leader = await cluster.leader(admin, "SESSIONS")
    bus = await cluster.admin(cluster.url_of(leader))
    followers = [await bus.follow("SESSIONS", [key.in_user], 1) for _ in range(6)]
    await bus.publish(key.in_user, b"0")
    for follower in followers:
        assert (await asyncio.wait_for(follower.__anext__(), 10)).data == b"0"
    hosts = [await _host_of(admin, follower) for follower in followers]
    doomed = next(host for host in [*hosts, *cluster.servers] if host != leader)
    cluster.servers[doomed].kill()
    try:
        for number in range(1, 4):
            await _store(bus, key, b"%d" % number)
        async with asyncio.timeout(GAP_S):
            for follower in followers:
                got = [(await follower.__anext__()).data for _ in range(3)]
                assert got == [b"1", b"2", b"3"]
    finally:
        cluster.servers[doomed].start()
    for follower in followers:
        await follower.close()
    await bus.close()


async def test_a_killed_leader_loses_nothing_and_nobody_spins(
    cluster: Cluster, admin: Bus, key: SessionKey
) -> None:
    """X-5: writes go on with the next leader, and so does pulling, without asking all the time."""
    leader = await cluster.leader(admin, "SESSIONS")
    elsewhere = next(name for name in cluster.servers if name != leader)
    bus = await cluster.admin(cluster.url_of(elsewhere))
    puller = await bus.pull(WAKE)
    acked = [await _store(bus, key, b"%d" % number) for number in range(20)]
    sent_before = bus.connection.stats["out_msgs"]
    cluster.servers[leader].kill()
    try:
        acked += [await _store(bus, key, b"%d" % number) for number in range(20, 40)]
        pulled: list[int] = []
        async with asyncio.timeout(GAP_S):
            while not set(pulled) >= set(acked):
                wake = await puller.__anext__()
                await bus.ack(wake)
                pulled.append(wake.seq)
        assert bus.connection.stats["out_msgs"] - sent_before - len(pulled) < 300
        assert await _stored(bus, key) == acked
    finally:
        cluster.servers[leader].start()
    await puller.close()
    await bus.close()


async def _store(bus: Bus, key: SessionKey, data: bytes) -> int:
    """Publish until it is acknowledged; returns its sequence."""
    async with asyncio.timeout(30):
        pause_s = pauses()
        while True:
            try:
                msg_id = f"{key}-{data.decode()}"
                return (await bus.publish(key.in_user, data, msg_id=msg_id, timeout=1.5)).seq
            except Unavailable:
                await asyncio.sleep(next(pause_s))


async def _stored(bus: Bus, key: SessionKey) -> list[int]:
    """Read until it is answered: a reading's consumer may be given to the node that is gone."""
    async with asyncio.timeout(GAP_S):
        pause_s = pauses()
        while True:
            try:
                return [message.seq for message in await bus.read("SESSIONS", [key.in_user])]
            except Unavailable:
                await asyncio.sleep(next(pause_s))


async def test_a_cluster_without_a_majority_says_so(cluster: Cluster, admin: Bus) -> None:
    """X-6: nothing is acknowledged, nobody hangs; when the nodes are back all goes on."""
    key = SessionKey("bob", "vigil", "t1")
    names = list(cluster.servers)
    bus = await cluster.admin(cluster.url_of(names[0]))
    for name in names[1:]:
        cluster.servers[name].kill()
    try:
        for _ in range(3):
            with pytest.raises(Unavailable):
                await bus.publish(key.in_user, b"x", timeout=1.0)
    finally:
        for name in names[1:]:
            cluster.servers[name].start()
    await cluster.whole(bus)
    await _store(bus, key, b"after")
    await bus.close()
