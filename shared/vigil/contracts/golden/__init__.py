"""The golden files: a record of every version ever written, as the bytes on the bus.

They are data of the package: the AsyncAPI document shows them wherever Vigil runs, and the tests
decode the same bytes for good (SPEC S-14). A new version adds `{name}.v{version}.json`; no file is
ever changed.
"""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any


@functools.cache
def records() -> dict[str, bytes]:
    """Return every golden file: its name without the ending -> its bytes.

    >>> sorted(records())[0], json.loads(records()["said.v1"])["text"]
    ('attempt.v1', 'Hi')
    """
    found = (file for file in files(__name__).iterdir() if file.name.endswith(".json"))
    return {file.name.removesuffix(".json"): file.read_bytes() for file in found}


def versions(name: str) -> list[bytes]:
    """Return the files of one record, oldest version first; [] if there is none.

    >>> len(versions("turn")), versions("of_tomorrow")
    (2, [])
    """
    numbers = {
        int(number): data
        for file, data in records().items()
        for of, _, number in [file.rpartition(".v")]
        if of == name
    }
    return [numbers[number] for number in sorted(numbers)]


def newest() -> dict[str, Any]:
    """Return the newest version of each record, parsed: its name -> the JSON."""
    names = sorted({file.rpartition(".v")[0] for file in records()})
    return {name: json.loads(versions(name)[-1]) for name in names}
