"""What the wheel holds beside the package: services, prompts, and what memory reads of WordLlama.

A checkout has services and prompts where they are: copies of them, which are made at an install,
would stand in for what was moved or removed since.

WordLlama is a requirement of the build and not of the wheel (ADR 69): two files of it are read, and
it would bring 20 packages. Where the build has none, the wheel is built without, and says so.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = {
    "services": "vigil/programs/services",
    "prompts": "vigil/programs/prompts",
    "deploy/vigil_agents.pth": "vigil_agents.pth",
}
FILES = ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")


class ProgramsHook(BuildHookInterface[Any]):
    """Puts the programs into the wheel; the files, with their licence, into `vigil_weights`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built."""
        if version == "editable":
            return  # deploy/weights.py fetches the weights
        for name, place in PROGRAMS.items():
            build_data["force_include"][str(Path(self.root) / name)] = place
        found = importlib.util.find_spec("wordllama")
        if found is None or not found.submodule_search_locations:
            self.app.display_warning("no WordLlama: this wheel finds memories by full text alone")
            return
        package = Path(found.submodule_search_locations[0])
        (told,) = package.parent.glob("wordllama-*.dist-info")
        for path in (*(package / name for name in FILES), next(told.rglob("LICENSE"))):
            build_data["force_include"][str(path)] = f"vigil_weights/{path.name}"
