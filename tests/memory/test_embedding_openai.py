"""An endpoint that speaks OpenAI's interface for embeddings: right, wrong, slow and away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog

from services.memory.embedding.openai import CHARACTERS_MIN, TEXTS_MAX, OpenAIEmbedder
from tests.support.memories import asking
from tests.support.receiver import (
    Behaviour,
    Receiver,
    Request,
    drip,
    lose_connections,
    raw,
    running_receiver,
    silence,
    status,
)  # fmt: skip
from tests.support.stack import running_stack
from vigil.errors import Unavailable

KEY = "sk-the-secret-of-the-tests"
DIMENSION = 6


def numbers(text: str) -> list[float]:
    """What the endpoint gives for a text: not of unit norm."""
    seed = sum(text.encode("utf-8", "replace"))
    return (3 * np.random.default_rng(seed).standard_normal(DIMENSION)).tolist()


def answer(request: Request) -> bytes:
    """A right answer, in another order."""
    asked = json.loads(request.body)["input"]
    data = [
        {"object": "embedding", "index": n, "embedding": numbers(t)} for n, t in enumerate(asked)
    ]
    return json.dumps({"object": "list", "data": data[::-1], "usage": {}}).encode()


def http(body: bytes) -> Behaviour:
    return raw(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


def right(request: Request, _: int) -> Behaviour:
    return http(answer(request))


@pytest.fixture
async def endpoint() -> AsyncIterator[Receiver]:
    async with running_receiver() as receiver:
        receiver.choose = right
        yield receiver


@pytest.fixture
async def embedder(endpoint: Receiver) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(
        f"http://127.0.0.1:{endpoint.port}/v1/", "tiny", KEY, answer_s_max=0.5
    )
    yield embedder
    await embedder.close()


def expected(*texts: str) -> Any:
    vectors = np.array([numbers(text) for text in texts])
    return pytest.approx(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), abs=1e-5)


async def test_each_text_gets_its_vector_of_unit_norm(
    endpoint: Receiver, embedder: OpenAIEmbedder
) -> None:
    texts = ["roses", "猫", "a\0b"]
    vectors = await embedder.embed(texts)
    assert vectors == expected(*texts)
    assert (vectors.dtype, embedder.dimension, embedder.name) == (np.float32, 6, "openai-tiny-6")
    (request,) = endpoint.requests
    assert request.target == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.body) == {
        "model": "tiny", "input": texts, "encoding_format": "float"
    }  # fmt: skip


async def test_a_connection_that_is_lost_as_it_is_opened_is_tried_again(
    endpoint: Receiver, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        lose_connections(patch)
        with pytest.raises(Unavailable, match="the connection was lost as it was opened"):
            await embedder.embed(["roses"])
    assert endpoint.requests == []
    assert await embedder.embed(["roses"]) == expected("roses")


async def test_a_local_endpoint_needs_no_key(endpoint: Receiver) -> None:
    embedder = OpenAIEmbedder(f"http://127.0.0.1:{endpoint.port}/v1", "tiny", None)
    await embedder.embed(["roses"])
    assert "authorization" not in endpoint.requests[0].headers
    await embedder.close()


async def test_many_texts_go_in_batches(endpoint: Receiver, embedder: OpenAIEmbedder) -> None:
    texts = [f"text {n}" for n in range(2 * TEXTS_MAX + 3)]
    assert await embedder.embed(texts) == expected(*texts)
    sizes = [len(json.loads(one.body)["input"]) for one in endpoint.requests]
    assert sizes == [TEXTS_MAX, TEXTS_MAX, 3]


async def test_texts_without_a_word_are_zero_and_not_sent(
    endpoint: Receiver, embedder: OpenAIEmbedder
) -> None:
    """Endpoints refuse an empty string, and with it the whole batch."""
    vectors = await embedder.embed(["", "roses", " \n"])
    assert not vectors[0].any()
    assert not vectors[2].any()
    assert vectors[1:2] == expected("roses")
    assert json.loads(endpoint.requests[0].body)["input"] == ["roses"]


async def test_a_text_that_is_too_long_is_cut_and_holds_up_no_other(
    endpoint: Receiver, embedder: OpenAIEmbedder
) -> None:
    """One poison memory must not stop the vectors of all (SPEC X-6)."""

    def choose(request: Request, times: int) -> Behaviour:
        texts = json.loads(request.body)["input"]
        is_too_long = any(len(text) > 1000 for text in texts)
        return status(400) if is_too_long else right(request, times)

    endpoint.choose = choose
    texts = [f"text {n}" for n in range(7)] + ["word " * 1600]
    assert await embedder.embed(texts) == expected(*texts[:7], texts[7][:1000])


async def test_a_model_that_it_does_not_have_is_told(
    endpoint: Receiver, embedder: OpenAIEmbedder
) -> None:
    """400 whatever the text: it ends, though."""
    endpoint.choose = lambda *_: status(400)
    with pytest.raises(Unavailable, match="400"):
        await embedder.embed(["word " * 400, "other"])
    sent = [max(map(len, json.loads(one.body)["input"])) for one in endpoint.requests]
    assert min(sent) <= CHARACTERS_MIN
    assert len(sent) < 10


def wrong(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Request, int], Behaviour]:
    """An answer whose data is not what it should be."""

    def choose(request: Request, _: int) -> Behaviour:
        data = json.loads(answer(request))["data"]
        return http(json.dumps({"data": change(data)}).encode())

    return choose


@pytest.mark.parametrize(
    ("choose", "reason"),
    [
        (lambda *_: status(401), "401"),
        (lambda *_: status(429), "429"),
        (lambda *_: status(503), "503"),
        (lambda *_: status(302, location="http://elsewhere.test/"), "302"),
        (lambda *_: silence, "no answer within 0.5 s"),
        (lambda *_: drip, "no answer within 0.5 s"),
        (lambda *_: raw(b""), "disconnected"),
        (lambda *_: raw(b"\xff\xfe\r\n\r\n"), "status line"),
        (lambda *_: http(b"<html>sign in</html>"), "not an answer of that interface"),
        (lambda *_: http(b"\xff"), "not an answer of that interface"),
        (lambda *_: http(b'{"data": null}'), "not an answer of that interface"),
        (wrong(lambda data: data[:1]), "1 vectors for 2 texts"),
        (wrong(lambda data: [*data, data[0]]), "3 vectors for 2 texts"),
        (wrong(lambda data: [data[0], data[0]]), "wrong indexes"),
        (wrong(lambda data: [data[0] | {"embedding": []}, data[1]]), "not an answer"),
        (lambda *_: http(b'{"data": [{"index": 0, "embedding": [1e999]}]}'), "no"),
        (wrong(lambda data: [data[0] | {"embedding": ["x"]}, data[1]]), "not an answer"),
        (wrong(lambda data: [data[0] | {"embedding": [1.0]}, data[1]]), "different lengths"),
    ],
)
async def test_what_goes_wrong_is_told_as_unavailable_with_the_reason(
    endpoint: Receiver,
    embedder: OpenAIEmbedder,
    choose: Callable[[Request, int], Behaviour],
    reason: str,
) -> None:
    """And the key is in no error, no log and no repr (RELIABILITY S15)."""
    endpoint.choose = choose
    with structlog.testing.capture_logs() as logs, pytest.raises(Unavailable) as told:
        await embedder.embed(["roses", "cats"])
    assert reason in str(told.value)
    assert f"127.0.0.1:{endpoint.port}" in str(told.value)
    assert KEY not in f"{told.value!r} {embedder!r} {logs}"
    assert embedder.dimension == 0
    endpoint.choose = right
    assert await embedder.embed(["roses"]) == expected("roses")


async def test_nobody_listens() -> None:
    async with running_receiver() as gone:
        port = gone.port
    embedder = OpenAIEmbedder(f"http://127.0.0.1:{port}/v1", "tiny", KEY)
    with pytest.raises(Unavailable, match="nothing listens there"):
        await embedder.embed(["roses"])
    await embedder.close()


async def test_a_model_that_was_exchanged_behind_it_is_told(
    endpoint: Receiver, embedder: OpenAIEmbedder
) -> None:
    """Spaces are never mixed: the dimension was told to the index."""
    await embedder.embed(["roses"])
    endpoint.choose = wrong(lambda data: [one | {"embedding": [1.0, 2.0]} for one in data])
    with pytest.raises(Unavailable, match=r"different lengths: \[2, 6\]"):
        await embedder.embed(["roses"])


async def test_many_at_once(endpoint: Receiver) -> None:
    embedder = OpenAIEmbedder(f"http://127.0.0.1:{endpoint.port}/v1/", "tiny", KEY)
    answers = await asyncio.gather(*(embedder.embed([f"text {n}"]) for n in range(20)))
    await embedder.close()
    for number, one in enumerate(answers):
        assert one == expected(f"text {number}")


@pytest.mark.parametrize(
    ("section", "most"),
    [({}, 0.15), ({"embedder": "openai"}, 0.4), ({"embedder": "openai", "weight_vector": 1}, 1)],
)
async def test_likeness_counts_more_if_a_model_read_the_whole_text(
    tmp_path: Path, endpoint: Receiver, section: dict[str, object], most: float
) -> None:
    """What is most like a question gets all that likeness counts for."""
    url = f"http://127.0.0.1:{endpoint.port}/v1"
    memory = {"embedder_model": "m", "embedder_url": url, **section}
    async with running_stack(tmp_path, services=("memory",), memory=memory) as stack:
        ann = await asking(stack)
        for text in ("The dog sleeps on the sofa", "The ship sails to Oslo", "Ann drinks tea"):
            await ann.save(text)
        await ann.until_vectors()
        hits = (await ann.recall("a puppy on a sofa")).hits
        assert max(hit.parts.vector for hit in hits) == pytest.approx(most)
