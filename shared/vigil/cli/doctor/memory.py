"""What `vigil doctor` says of memory: its folder, its embedder, and a Qdrant server.

Only a server that the settings name is called, once. Keys are never shown.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vigil import distribution
from vigil.observe.checks import Check, fail, ok, warn
from vigil.settings.config import Settings

ANSWER_S: Final = 3.0
WITHOUT: Final = "until then recall goes by words alone, and says that it is degraded"

WORSE: Final = "its weights say which words are alike, and make vectors by default"


def examine(settings: Settings) -> Iterator[Check]:
    """Check the folder, and what is set up beside the defaults."""
    yield folder(settings)
    config = settings.config.memory
    if config.embedder != "wordllama":
        yield embedder(settings)
    if not distribution.is_importable("wordllama"):
        yield warn("wordllama", f"not installed: {WORSE}", distribution.weights_command())
    if config.qdrant_url:
        yield qdrant(config.qdrant_url, settings.qdrant_api_key)


def folder(settings: Settings) -> Check:
    """Whether a replica can make its database where it belongs."""
    path = settings.memory
    existing = next(p for p in (path, *path.parents) if p.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail("memory", f"{existing} is not writable", "correct its owner")
    slots = sorted(path.glob("*/memory.db"))
    if not slots:
        return ok("memory", f"{path} (nothing made yet)")
    size = sum(one.stat().st_size for slot in slots for one in slot.parent.rglob("*") if _is(one))
    count = "1 database" if len(slots) == 1 else f"{len(slots)} databases"
    return ok("memory", f"{count}, {size / 1024**2:.0f} MiB with the vectors")


def _is(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def embedder(settings: Settings) -> Check:
    """Whether what makes vectors is named; whether it answers is for the service to find out."""
    config = settings.config.memory
    if not config.embedder_model:
        return fail("embedder", f"{config.embedder}, without a model", "set memory.embedder_model")
    if config.embedder == "openai":
        return _endpoint(settings)
    return _model(Path(config.embedder_model).expanduser())


def _endpoint(settings: Settings) -> Check:
    config = settings.config.memory
    if not config.embedder_url:
        return fail("embedder", "openai, without an endpoint", "set memory.embedder_url")
    if not settings.embedder_api_key:
        found = f"{config.embedder_model}, no key"
        return warn("embedder", found, "set EMBEDDER_API_KEY if the endpoint needs one")
    return ok("embedder", f"{config.embedder_model} at {config.embedder_url}, key set")


def _model(path: Path) -> Check:
    if not path.is_dir():
        return warn(
            "embedder", f"onnx, {path}", "no folder: fastembed fetches it at the first start"
        )
    missing = [name for name in ("model.onnx", "tokenizer.json") if not (path / name).is_file()]
    if missing:
        return fail("embedder", f"{path} has no {' and no '.join(missing)}", "add it")
    return ok("embedder", f"onnx, {path}")


def qdrant(url: str, key: str | None) -> Check:
    """Whether the server answers, and takes the key."""
    if not url.startswith(("http://", "https://")):
        return fail("qdrant", f"{url} is no http or https URL", "correct QDRANT_URL")
    request = urllib.request.Request(f"{url.rstrip('/')}/collections")  # noqa: S310 - checked above
    if key:
        request.add_header("api-key", key)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S):  # noqa: S310 - checked above
            return ok("qdrant", f"{url} answers{', key set' if key else ''}")
    except urllib.error.HTTPError as error:
        advice = "set QDRANT_API_KEY" if error.code in (401, 403) else WITHOUT
        return fail("qdrant", f"{url} answers with {error.code}", advice)
    except (OSError, ValueError) as error:
        return warn("qdrant", f"{url} can't be reached: {error}", WITHOUT)
