"""How what runs beside something is ended."""

from __future__ import annotations

import asyncio

import pytest

from vigil.background.end import end_tasks


async def test_it_waits_until_all_have_cleaned_up_and_raises_nothing_of_theirs() -> None:
    closed: list[str] = []

    async def work(name: str, *, fails: bool) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append(name)
            if fails:
                raise ValueError(name)

    tasks = [asyncio.create_task(work(name, fails=name == "b")) for name in "abc"]
    await asyncio.sleep(0)
    await end_tasks(*tasks)
    assert closed == ["a", "b", "c"]
    assert isinstance(tasks[1].exception(), ValueError)
    await end_tasks(*tasks)  # once more: they are over
    await end_tasks()


async def test_who_is_cancelled_while_it_waits_is_cancelled() -> None:
    """As little as an end may hold up whoever was told to stop."""
    hold = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await hold.wait()

    task = asyncio.create_task(slow())
    await asyncio.sleep(0)
    ending = asyncio.create_task(end_tasks(task))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(5):
            await ending
