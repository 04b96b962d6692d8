"""WordLlama's codebook: a vector for each token of the LLaMA 2 vocabulary, and the tokenizer.

The files come inside WordLlama's wheel, so there is nothing to download. They are read as they are,
not through its package: that imports an HTTP client to download with, sets up logging for the whole
process, and pads every text of a batch to the longest (a gigabyte, if one has 16 kB). The vectors
are the same; a test compares them. So a wheel for another Python does, too: its compiled code is
never imported.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from vigil import distribution
from vigil.errors import ConfigError

DIMENSION: Final = 256
TOKENS: Final = 32_000
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"


class NotInstalled(ConfigError):
    """The package that holds the weights isn't here; everything else works without."""


class Codebook:
    """32,000 tokens.

    Args:
        tokenizer: None: no text has a token (see :func:`empty`).
        weights: float16[tokens, 256], as in the file, half of what they would be to reckon with;
            not of unit norm: the longer a token's vector, the more it counts in a mean.
    """

    def __init__(self, tokenizer: Tokenizer | None, weights: npt.NDArray[np.float16]) -> None:
        self.tokenizer = tokenizer
        self.weights = weights

    def mean(self, ids: list[int]) -> npt.NDArray[np.float32]:
        """Return the mean of tokens' vectors; at least one."""
        found: npt.NDArray[np.float32] = self.weights[ids].astype(np.float32).mean(axis=0)
        return found

    def tokens(self, text: str) -> list[int]:
        """Return the token ids of a text, in its order."""
        if self.tokenizer is None:
            return []
        ids: list[int] = self.tokenizer.encode(_clean(text), add_special_tokens=False).ids
        return ids


@functools.cache
def load() -> Codebook:
    """Return the codebook; 0.3 s and 32 MB the first time in a process.

    Raises:
        NotInstalled: WordLlama isn't there.
        ConfigError: it is, without its model.
    """
    package = importlib.util.find_spec("wordllama")
    if package is None or not package.submodule_search_locations:
        raise NotInstalled(f"WordLlama isn't installed: {distribution.weights_command()}")
    folder = Path(package.submodule_search_locations[0])
    try:
        weights = load_file(folder / _WEIGHTS)["embedding.weight"]
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except (OSError, KeyError, ValueError) as error:
        raise ConfigError(f"the installed WordLlama lacks its model: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Codebook(tokenizer, weights)


@functools.cache
def empty() -> Codebook:
    """Return the codebook of a machine without WordLlama.

    It has as many tokens, since some may be stored with memories that were saved with WordLlama.
    """
    return Codebook(None, np.zeros((TOKENS, DIMENSION), np.float16))


def _clean(text: str) -> str:
    """Return a text that the tokenizer takes: a lone surrogate is not Unicode."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
