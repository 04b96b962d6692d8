"""/api/attachments: what is uploaded, named by a message, and reached by its owner alone."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.gateway.test_gateway_whole import Process
from tests.support.gateway import Gate, assert_problem, running_gateway, until
from tests.support.pictures import pdf, png
from vigil.attachments import quota, store
from vigil.contracts import UserMessage, decode_event
from vigil.crash import EXIT_CODE
from vigil.subjects import SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATH: Final = "/api/attachments"
SESSION: Final = "/api/sessions/{}:vigil:t1/messages"
NAMED: Final = (
    "gateway.message.after_publish",
    "attachment.named",
    "attachment.copied",
)
"""Points after the message is stored."""
POINTS: Final = ("attachment.uploaded", "attachment.noted", *NAMED)
LARGE: Final = png(40, 50, fill=bytes(1_200_000))
"""More than two parts, and more than other bodies may have."""


async def test_what_is_uploaded_comes_back_and_to_nobody_else(shared_gate: Gate) -> None:
    ann, bob = await shared_gate.person("ann"), await shared_gate.person("bob")
    made = await ann.post(PATH, params={"name": "Plan für 🗺.html"}, content=LARGE)
    assert made.status_code == 201, made.text
    about = made.json()
    assert (about["type"], about["width"], about["size"]) == ("image/png", 40, len(LARGE))
    got = await ann.get(f"{PATH}/{about['hash']}")
    assert got.content == LARGE
    assert got.headers["content-type"] == "image/png"
    assert got.headers["x-content-type-options"] == "nosniff"
    told = "attachment; filename*=UTF-8''Plan%20f%C3%BCr%20%F0%9F%97%BA.html"
    assert got.headers["content-disposition"] == told
    assert_problem(await bob.get(f"{PATH}/{about['hash']}"), 404, "hash")
    assert_problem(await (await shared_gate.http()).get(f"{PATH}/{about['hash']}"), 401)
    body = {"text": "look", "attachments": [about["hash"]]}
    refused = await bob.post(SESSION.format("bob"), json=body)
    assert_problem(refused, 404, "attachments")
    assert (await shared_gate.admin.get_last("SESSIONS", "session.vigil.bob.>")) is None


async def test_a_page_that_is_uploaded_is_a_text_and_never_shown_as_a_page(
    shared_gate: Gate,
) -> None:
    kim, page = await shared_gate.person("kim"), b"<!doctype html><script>alert(1)</script>"
    made = (await kim.post(PATH, params={"name": "a.html"}, content=page)).json()
    assert made["type"] == "text/plain"
    got = await kim.get(f"{PATH}/{made['hash']}")
    assert got.content == page
    assert got.headers["content-type"] == "text/plain; charset=utf-8"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-disposition"].startswith("attachment;")
    assert got.headers["content-security-policy"].startswith("sandbox;")


async def test_a_message_keeps_for_good_what_it_names(shared_gate: Gate) -> None:
    """Named, it stays when the day of the upload is over."""
    cat = await shared_gate.person("cat")
    files = [png(1, 1), pdf(2)]
    hashes = [
        (await cat.post(PATH, params={"name": f"file {n}"}, content=one)).json()["hash"]
        for n, one in enumerate(files)
    ]
    body = {"text": "compare", "attachments": hashes, "idempotency_key": "k"}
    said = await cat.post(SESSION.format("cat"), json=body)
    assert said.status_code == 202, said.text
    await shared_gate.admin.api("STREAM.PURGE.UPLOADS", {"filter": "upload.cat.>"})
    again = await cat.post(SESSION.format("cat"), json=body)
    assert again.json() == said.json(), "a repeat is the same message"
    other = await cat.post(SESSION.format("cat"), json=body | {"attachments": hashes[:1]})
    assert_problem(other, 422, "idempotency_key")
    key = SessionKey.parse("cat:vigil:t1")
    (stored,) = await shared_gate.admin.read("SESSIONS", [key.in_user])
    event = decode_event(stored.data)
    assert isinstance(event, UserMessage)
    assert [one.in_words for one in event.payload.attachments] == [
        "file 0, 1x1 pixels, 1 kB",
        "file 1, 2 pages, 1 kB",
    ]
    (line,) = (await cat.get("/api/sessions/cat:vigil:t1")).json()["messages"]
    assert [one["hash"] for one in line["attachments"]] == hashes
    for one, hash_ in zip(files, hashes, strict=True):
        assert (await cat.get(f"{PATH}/{hash_}")).content == one


@pytest.mark.parametrize(
    ("name", "data", "status", "field"),
    [
        ("a.png", b"", 422, "file"),
        ("a.png", b"GIF is what it's not\0", 422, "file"),
        ("a/b.png", png(1, 1), 422, "name"),
        ("a\nb.png", png(1, 1), 422, "name"),
        ("a.png", png(1, 1, fill=bytes(3584 * 1024)), 413, "file"),
    ],
)
async def test_what_cannot_be_taken_is_named(
    shared_gate: Gate, name: str, data: bytes, status: int, field: str
) -> None:
    dan = await shared_gate.person("dan")
    answer = await dan.post(PATH, params={"name": name}, content=data)
    assert_problem(answer, status, field)


@pytest.mark.parametrize(
    ("hashes", "status"),
    [
        (["0" * 64], 404),
        (["../x"], 422),
        ([f"{n:064x}" for n in range(11)], 422),
        (["1" * 64] * 2, 422),
    ],
)
async def test_a_message_names_what_is_there(
    shared_gate: Gate, hashes: list[str], status: int
) -> None:
    eve = await shared_gate.person("eve")
    answer = await eve.post(SESSION.format("eve"), json={"text": "see", "attachments": hashes})
    assert_problem(answer, status, "attachments")


async def test_an_upload_that_is_cut_off_leaves_nothing(shared_gate: Gate) -> None:
    data, token = png(2, 2, fill=bytes(300_000)), await shared_gate.token("nell")
    reader, writer = await asyncio.open_connection("127.0.0.1", shared_gate.port)
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{shared_gate.port}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data[:200_000])
    writer.write_eof()
    await reader.read()
    writer.close()
    assert await shared_gate.admin.subjects("UPLOADS", "upload.nell.>") == {}


async def test_a_file_without_all_its_parts_is_not_there(shared_gate: Gate) -> None:
    """`about` comes last: killed before, the upload is none; one whose parts expired is none."""
    gil = await shared_gate.person("gil")
    hash_ = (await gil.post(PATH, content=LARGE)).json()["hash"]
    await shared_gate.admin.api("STREAM.PURGE.UPLOADS", {"filter": f"upload.gil.{hash_}.1"})
    assert not await store.keep(shared_gate.admin, "gil", hash_)
    assert_problem(await gil.get(f"{PATH}/{hash_}"), 404, "hash")
    assert (await gil.post(PATH, content=LARGE)).status_code == 201
    assert (await gil.get(f"{PATH}/{hash_}")).content == LARGE


# ---------------------------------------------------------------- how much


async def test_a_person_has_so_much_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nothing names yet pushes out what others upload; what is named stays for good."""
    async with running_gateway(tmp_path, person_attachments_bytes_max=1_000_000) as gate:
        hal, ida = await gate.person("hal"), await gate.person("ida")
        first, second, third = (png(n, n, fill=bytes(400_000)) for n in (5, 6, 7))
        hash_ = (await hal.post(PATH, content=first)).json()["hash"]
        with monkeypatch.context() as patch:
            patch.setattr(quota, "UPLOADS_BYTES_MAX", 4 * 600_000)
            problem = assert_problem(await hal.post(PATH, content=second), 413, "file")
            assert "would make 0.8 MiB that no message names yet" in problem["detail"]
            assert (await hal.post(PATH, content=first)).status_code == 201, "it's there"
            assert (await ida.post(PATH, content=second)).status_code == 201
        said = await hal.post(SESSION.format("hal"), json={"text": "", "attachments": [hash_]})
        assert_problem(said, 422, "text")
        assert await gate.admin.subjects("FILES", "file.hal.>") == {}, "what's refused names none"
        said = await hal.post(SESSION.format("hal"), json={"text": "see", "attachments": [hash_]})
        assert said.status_code == 202
        assert (await hal.post(PATH, content=second)).status_code == 201
        problem = assert_problem(await hal.post(PATH, content=third), 413, "file")
        assert "would make 1.2 MiB of your files; at most 1.0 MiB" in problem["detail"]


# ---------------------------------------------------------------- kills


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_step_a_file_is_kept_if_the_log_names_it(
    shared_gate: Gate, point: str
) -> None:
    """X-5: nothing that a stored message names is lost, and nothing else is kept."""
    user = f"kim{POINTS.index(point)}"
    headers = {"Authorization": f"Bearer {await shared_gate.token(user)}"}
    body = {"text": "see", "attachments": [hashlib.sha256(LARGE).hexdigest()]}
    for hash_, note in (("no-hash", b"{}"), ("0" * 64, b"{")):  # nobody of ours wrote these
        await shared_gate.admin.publish(f"upload.{user}.{hash_}.for-1", note)
    process = Process(shared_gate)
    try:
        await process.start(f"{point}:1")
        async with httpx2.AsyncClient(base_url=process.url, headers=headers) as client:
            with contextlib.suppress(httpx2.TransportError):
                await client.post(PATH, content=LARGE)
                await client.post(SESSION.format(user), json=body)
        assert await process.ended() == EXIT_CODE
        named = await shared_gate.admin.get_last("SESSIONS", f"session.vigil.{user}.>")
        assert (named is not None) == (point in NAMED)
        await process.start()

        async def is_kept() -> bool:
            return await store.is_kept(shared_gate.admin, user, body["attachments"][0])

        if named is not None:
            await until(is_kept, "the next start keeps it")
        async with httpx2.AsyncClient(base_url=process.url, headers=headers) as client:
            if named is None:
                assert await shared_gate.admin.subjects("FILES", f"file.{user}.>") == {}
                assert (await client.post(PATH, content=LARGE)).status_code == 201
                assert (await client.post(SESSION.format(user), json=body)).status_code == 202
            got = await client.get(f"{PATH}/{body['attachments'][0]}")
            assert got.content == LARGE
    finally:
        await process.stop()
