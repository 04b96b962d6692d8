"""Any endpoint that speaks OpenAI's ``POST {base}/embeddings``: a provider's, or one of your own.

Texts are sent there: that is what choosing this embedder means. How many numbers a vector has is
known with the first answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Final
from urllib.parse import urlsplit

import httpx2
import msgspec
import numpy as np

from vigil import __version__
from vigil.errors import ConfigError, Unavailable
from vigil.net.guard import LOST_AT_ONCE
from vigil.texts.trouble import reason_of

from . import Vectors
from .unit import unit

TEXTS_MAX: Final = 64
ANSWER_S_MAX: Final = 60.0
CHARACTERS_MIN: Final = 256
"""A text that is refused is sent again without its second half; one as short as this is not what is
wrong."""
TOO_LONG: Final = (400, 413, 422)
"""What endpoints answer when a text has more tokens than the model takes."""
REASON_CHARACTERS_MAX: Final = 300


class Embedding(msgspec.Struct, frozen=True):
    index: Annotated[int, msgspec.Meta(ge=0)]
    embedding: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]


class Embeddings(msgspec.Struct, frozen=True):
    data: tuple[Embedding, ...]


class EmbeddingRefused(Unavailable):
    """The endpoint can be reached and did not take this. `status` is as of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class OpenAIEmbedder:
    """See `Embedder`.

    Args:
        url: the base, up to and with ``/v1``.
    """

    def __init__(
        self, url: str, model: str, api_key: str | None, *, answer_s_max: float = ANSWER_S_MAX
    ) -> None:
        """Raises: ConfigError: that isn't a URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("memory.embedder_url must be a URL, up to and with /v1")
        self._host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
        self._model = model
        self._answer_s_max = answer_s_max
        self.dimension = 0
        headers = {"user-agent": f"Vigil/{__version__}"}
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        self._client = httpx2.AsyncClient(
            base_url=url.rstrip("/") + "/",
            headers=headers,
            timeout=answer_s_max,
            follow_redirects=False,  # what is remembered goes where it was to go
        )

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._host!r}, {self._model!r})"

    @property
    def name(self) -> str:
        return f"openai-{self._model}-{self.dimension}"

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Vectors:
        del is_query  # the interface knows no difference
        worded = [n for n, text in enumerate(texts) if text.strip()]
        found = []
        for start in range(0, len(worded), TEXTS_MAX):
            found += await self._embed([texts[n] for n in worded[start : start + TEXTS_MAX]])
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        if worded:
            vectors[worded] = found
        return unit(vectors)

    async def close(self) -> None:
        await self._client.aclose()

    async def _embed(self, texts: list[str]) -> list[tuple[float, ...]]:
        """Embed texts that have words; those that are too long only as far as they are taken."""
        try:
            return self._checked(await self._post(texts), len(texts))
        except EmbeddingRefused as error:
            if error.status not in TOO_LONG or (len(texts) == 1 and _is_short(texts[0])):
                raise
        if len(texts) == 1:
            return await self._embed([texts[0][: len(texts[0]) // 2]])
        half = len(texts) // 2
        return await self._embed(texts[:half]) + await self._embed(texts[half:])

    async def _post(self, texts: list[str]) -> bytes:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            async with asyncio.timeout(self._answer_s_max):
                response = await self._client.post("embeddings", json=body)
        except TimeoutError:
            raise self._error(f"no answer within {self._answer_s_max:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._error(reason_of(error)) from error
        except AttributeError as error:  # as in `vigil.net.guard`
            raise self._error(LOST_AT_ONCE) from error
        if response.status_code != 200:
            raise EmbeddingRefused(
                f"embeddings from {self._host}: it answered {response.status_code}",
                response.status_code,
            )
        return response.content

    def _checked(self, body: bytes, texts: int) -> list[tuple[float, ...]]:
        """Return the vectors in the order of the texts.

        Raises:
            Unavailable: the answer isn't one vector of the known dimension for each text.
        """
        try:
            data = msgspec.json.decode(body, type=Embeddings).data
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._error(f"not an answer of that interface: {error}") from error
        if sorted(one.index for one in data) != list(range(texts)):
            raise self._error(f"{len(data)} vectors for {texts} texts, or wrong indexes")
        sizes = {len(one.embedding) for one in data}
        if self.dimension:
            sizes.add(self.dimension)
        if len(sizes) != 1:
            raise self._error(f"vectors of different lengths: {sorted(sizes)}")
        if not all(isfinite(number) for one in data for number in one.embedding):
            raise self._error("numbers that are none")
        (self.dimension,) = sizes
        return [one.embedding for one in sorted(data, key=lambda one: one.index)]

    def _error(self, reason: str) -> Unavailable:
        return Unavailable(f"embeddings from {self._host}: {reason[:REASON_CHARACTERS_MAX]}")


def _is_short(text: str) -> bool:
    return len(text) <= CHARACTERS_MIN
