"""What older homes lack: a list of steps, each from one number to the next. Pure.

A step is given the files that it touches, and returns those that are to be otherwise. So it can be
rehearsed without writing, repeated, and undone by putting the files back. Records aren't touched
by any: those of the log are lifted as they are read (`vigil.contracts.codec`), and what memory
makes of them has scripts of its own (services/memory/store/schema).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ..channels.push.section import FIRST_WRITTEN

Files = Mapping[str, bytes]
"""Names as in the home, with slashes, and what the files hold."""
Change = Mapping[str, bytes | None]
"""None: the file is to go."""


class CannotMigrate(Exception):
    """A file isn't what a step can work with. The text says what to do."""


class UpgradeStep(NamedTuple):
    """One change of a home."""

    name: str
    why: str
    """What it brings, in a sentence for a person."""
    touches: tuple[str, ...]
    """Patterns of the files' names, as `Path.glob` has them."""
    change: Callable[[Files], Change]
    """Raises: CannotMigrate."""


class Planned(NamedTuple):
    """What steps come to."""

    steps: tuple[UpgradeStep, ...]
    changed: Change
    """Only files that are otherwise than they were."""


class StepFailed(Exception):
    """Which step can't be taken, and why."""

    def __init__(self, step: UpgradeStep, reason: object) -> None:
        super().__init__(f"the step {step.name} can't be taken: {reason}")
        self.step = step


def planned(steps: Sequence[UpgradeStep], files: Files) -> Planned:
    """Take steps one after the other, in thought.

    Raises:
        StepFailed: one can't be taken, so none is.
    """
    now = dict(files)
    for step in steps:
        try:
            change = step.change(now)
        except CannotMigrate as error:
            raise StepFailed(step, error) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # A fault of ours, of which the home stays what it is.
            raise StepFailed(step, repr(error)) from error
        for name, data in change.items():
            if data is None:
                now.pop(name, None)
            else:
                now[name] = data
    names = sorted(now.keys() | files.keys())
    return Planned(
        tuple(steps), {name: now.get(name) for name in names if now.get(name) != files.get(name)}
    )


def _push_channel(files: Files) -> Change:
    """Add the channel that notifies browsers, as a first start writes it.

    >>> _push_channel({"vigil.toml": b"[channels.other]\\nkind = 'push'\\n"})
    {}
    """
    text = files.get("vigil.toml")
    if text is None:
        return {}
    try:
        channels = tomllib.loads(text.decode()).get("channels", {})
    except (ValueError, RecursionError) as error:  # also of a number, or of brackets, without end
        raise CannotMigrate(f"vigil.toml can't be read ({error}): correct it") from error
    if "push" in channels or any(one.get("kind") == "push" for one in channels.values()):
        return {}
    return {"vigil.toml": text.rstrip(b"\n") + b"\n" + FIRST_WRITTEN.encode()}


STEPS: Final[tuple[UpgradeStep, ...]] = (
    UpgradeStep(
        name="push-channel",
        why="browsers can be notified with every page closed (a button in the console asks)",
        touches=("vigil.toml",),
        change=_push_channel,
    ),
)
"""In the order in which they are taken; never changed once released, only added to. One that leaves
what older versions can't read raises `store_format.FORMAT`, too."""
