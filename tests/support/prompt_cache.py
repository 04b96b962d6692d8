"""The provider's rule of what it keeps of a request and finds again, as its documentation has it.

A request is a sequence of blocks: tools, system, messages. A breakpoint keeps everything up to it,
if that is long enough, for a time that each use begins anew. A later request reads the longest
kept beginning that ends at one of its breakpoints or at one of the blocks just before it.

Source: the prompt caching page of the Messages API's documentation, 2026-11.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from vigil.contracts import Usage

TOKENS_MIN: Final = 1024
LOOKBACK: Final = 20
"""Blocks up to a breakpoint, that one among them."""
TTL_S: Final = 300.0
BYTES_PER_TOKEN: Final = 4


class PromptCache:
    """What one provider keeps."""

    def __init__(
        self, now: Callable[[], float], *, tokens_min: int = TOKENS_MIN, lookback: int = LOOKBACK
    ) -> None:
        """
        Args:
            now: seconds of any clock that goes forward.
            lookback: 1: as OpenAI's, which finds what ends exactly at a breakpoint.
        """
        self._now = now
        self._tokens_min = tokens_min
        self._lookback = lookback
        self._until: dict[str, float] = {}
        """Until when what begins so is kept."""

    def usage_of(self, body: dict[str, Any]) -> dict[str, int]:
        """Take in a request; return the input tokens as the API tells them."""
        prefixes, marks = list(_prefixes(body)), []
        for index, (_, tokens, is_marked) in enumerate(prefixes):
            if is_marked and tokens >= self._tokens_min:
                marks.append(index)
        read = max(
            (prefixes[i][1] for mark in marks for i in self._found(prefixes, mark)), default=0
        )
        for mark in marks:
            self._until[prefixes[mark][0]] = self._now() + TTL_S
        kept = prefixes[marks[-1]][1] if marks else 0
        return {
            "input_tokens": prefixes[-1][1] - kept,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": kept - read,
        }

    def _found(self, prefixes: list[tuple[str, int, bool]], mark: int) -> Iterator[int]:
        for index in range(mark, max(mark - self._lookback, -1), -1):
            if self._until.get(prefixes[index][0], 0.0) > self._now():
                self._until[prefixes[index][0]] = self._now() + TTL_S
                yield index
                return


def _prefixes(body: dict[str, Any]) -> Iterator[tuple[str, int, bool]]:
    """Yield of each block all that is up to it, the tokens of that, and whether it is marked."""
    digest, tokens = hashlib.sha256(str(body["model"]).encode()), 0
    for place, block in _blocks(body):
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        data = json.dumps([place, plain], ensure_ascii=False).encode()
        digest.update(data)
        tokens += -(-len(data) // BYTES_PER_TOKEN)
        yield digest.hexdigest(), tokens, "cache_control" in block


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (("tools", tool) for tool in body.get("tools", []))
    yield from (("system", block) for block in body.get("system", []))
    for message in body["messages"]:
        yield from ((message["role"], block) for block in message["content"])


def signature_of(body: dict[str, Any]) -> str:
    """Return what binds an answer's thinking to the request that it answers."""
    *_, (digest, _, _) = _prefixes(body)
    return digest


def is_torn(body: dict[str, Any]) -> bool:
    """Whether some thinking in a request comes after something else than when it was made."""
    before = ""
    for (digest, _, _), (_, block) in zip(_prefixes(body), _blocks(body), strict=True):
        if block.get("type") == "thinking" and block["signature"] != before:
            return True
        before = digest
    return False


def cached_share(usages: Iterable[Usage]) -> float:
    """Return which part of the input tokens of some calls was read from the cache."""
    usages = tuple(usages)
    read = sum(usage.cache_read_tokens for usage in usages)
    written = sum(usage.cache_write_tokens for usage in usages)
    return read / max(read + written + sum(usage.input_tokens for usage in usages), 1)
