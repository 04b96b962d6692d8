"""A program that fills the vectors of a folder, and goes on until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from services.memory.vectors.edge import EdgeIndex
from tests.support.vectors import DIMENSION, point


async def main(folder: Path) -> None:
    index = EdgeIndex(folder)
    await index.open("tests-16", DIMENSION)
    await index.upsert([point(n) for n in range(500)])
    await index.flush()
    print("flushed", flush=True)
    number = 500
    while True:
        await index.upsert([point(n) for n in range(number, number + 64)])
        number += 64


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
