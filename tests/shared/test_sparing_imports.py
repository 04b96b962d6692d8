"""Packages imported without what their `__init__` brings: they have all names, when asked."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from vigil.imports import imported_late
from vigil.imports.packages import import_sparingly

FILES = {
    "__init__.py": (
        "from . import deep\nfrom ._one import One as Uno\nfrom .deep import *\n"
        "VALUE = [name for name in dir() if name == 'Uno']\n"
    ),
    "_one.py": (
        "from . import _two\nfrom .deep.low import LOW\n\n"
        "class One:\n    two, low = _two.TWO, LOW\n"
    ),
    "_two.py": "TWO = 2\n",
    "heavy.py": "raise ImportError('nobody asked for this')\n",
    "deep/__init__.py": "from ..heavy import HEAVY\nfrom .low import LOW\n__all__ = ['LOW']\n",
    "deep/low.py": "LOW = 'low'\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for name, text in FILES.items():
        file = tmp_path / "sparing" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    before = [*sys.meta_path]
    yield import_sparingly("sparing")
    sys.meta_path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == "sparing"]:
        del sys.modules[name]


def imported() -> set[str]:
    return {name.partition(".")[2] for name in sys.modules if name.startswith("sparing.")}


def test_what_a_module_imports_late_is_there_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for whoever imports it by its name, before or after that."""
    folder = tmp_path / "belated"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import client\n")
    (folder / "api.py").write_text("STATUS = 503\n")
    client = "import belated.api\n\ndef status():\n    return belated.api.STATUS\n"
    (folder / "client.py").write_text(client)
    monkeypatch.syspath_prepend(tmp_path)
    with imported_late("belated.api"):
        belated = importlib.import_module("belated")
    try:
        assert "belated.api" not in sys.modules
        assert belated.client.status() == 503
        assert belated.api is importlib.import_module("belated.api")
        with imported_late("belated.api"):  # it's there, and stays
            assert belated.api is sys.modules["belated.api"]
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "belated"]:
            del sys.modules[name]


def test_a_package_that_is_not_imported_meanwhile_stays_as_it_is() -> None:
    with imported_late("belated.api"):
        pass
    assert "belated.api" not in sys.modules


@pytest.mark.parametrize("first", ["aiohttp", "nats.js", "nats.aio.transport", "vigil.sdk"])
def test_the_bus_is_imported_whatever_a_program_has_imported_before(first: str) -> None:
    """A bot imports aiohttp, and then Vigil's client."""
    wanted = "vigil.bus.bus, vigil.sdk.bus_client, nats"
    code = f"import {first}, {wanted}; print(nats.js.JetStreamContext)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "JetStreamContext" in done.stdout


def test_a_name_brings_its_module_alone(package: ModuleType) -> None:
    assert imported() == set()
    assert (package.Uno.two, package.Uno.low) == (2, "low")
    assert imported() == {"_one", "_two", "deep", "deep.low"}
    assert package.deep.LOW == "low"


def test_a_module_is_had_as_ever(package: ModuleType) -> None:
    from sparing import _two  # type: ignore[import-not-found]

    assert _two.TWO == 2
    assert package._two is _two
    assert import_sparingly("sparing") is package


def test_for_what_no_module_has_all_is_run(package: ModuleType) -> None:
    (Path(str(package.__file__)).parent / "heavy.py").write_text("HEAVY = 1\n")
    assert package.VALUE == ["Uno"]
    assert package.LOW == "low"
    assert package.deep.HEAVY == 1
    assert not hasattr(package, "nothing")


def test_what_is_wrong_in_a_module_is_told(package: ModuleType) -> None:
    with pytest.raises(ImportError, match="nobody asked"):
        _ = package.deep.HEAVY
    assert not hasattr(package, "__path_of_nobody__")
