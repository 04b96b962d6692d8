"""What the wheel holds beside the package: the data that memory reads of WordLlama.

WordLlama is a requirement of the build and not of the wheel (ADR 69): two files of it are read, and
it would bring 20 packages. Where the build has none, the wheel is built without, and says so.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")


class WeightsHook(BuildHookInterface[Any]):
    """Puts the files, and their licence, into the folder `vigil_weights` of the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built."""
        if version == "editable":
            return  # deploy/weights.py fetches them
        found = importlib.util.find_spec("wordllama")
        if found is None or not found.submodule_search_locations:
            self.app.display_warning("no WordLlama: this wheel finds memories by full text alone")
            return
        package = Path(found.submodule_search_locations[0])
        (told,) = package.parent.glob("wordllama-*.dist-info")
        for path in (*(package / name for name in FILES), next(told.rglob("LICENSE"))):
            build_data["force_include"][str(path)] = f"vigil_weights/{path.name}"
