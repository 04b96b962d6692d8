"""Takes the steps that a home hasn't seen, so that a kill at any point leaves it old or new.

    upgrade.new/         being written: what will be, what was, and the plan; removed if found
    upgrade/             the plan is whole: it is carried out to its end, by whoever finds it
    before-upgrade-N/    it was carried out: what was changed, as it was before step N was taken

Only whoever holds the home's lock may call this.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from .. import __version__
from ..errors import ConfigError
from ..settings.credentials import write_private
from ..texts.trouble import reason_of
from . import store_format
from .steps import STEPS, Planned, StepFailed, UpgradeStep, planned
from .store_format import FORMAT, StoreFormat

STAGED: Final = "upgrade.new"
DECIDED: Final = "upgrade"
KEPT: Final = "before-upgrade-"
PLAN: Final = "plan.json"
WHY: Final = {step.name: step.why for step in STEPS}
"""What each step brings, by its name."""
Passed = Callable[[str], None]


class DecidedUpgrade(msgspec.Struct, frozen=True, kw_only=True):
    """What is carried out."""

    steps: tuple[str, ...]
    before: StoreFormat | None
    after: StoreFormat
    was: tuple[str, ...]
    """Files that are kept as they were, in `old`."""
    will: tuple[str, ...]
    """Files that are written, from `new`."""


class Upgraded(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a home."""

    steps: tuple[str, ...]
    kept: Path | None
    """Where the changed files are as they were; None: no file was changed."""


def pending(home: Path, steps: Sequence[UpgradeStep] = STEPS) -> Sequence[UpgradeStep]:
    """Return the steps that a home hasn't seen. Raises: ConfigError: a newer Vigil used it."""
    found = store_format.check_home(home)
    return steps[found.step if found else 0 :]


def plan_of(home: Path, steps: Sequence[UpgradeStep]) -> Planned:
    """Take steps in thought.

    Raises:
        ConfigError: one can't be taken; nothing is changed.
    """
    names = {
        path.relative_to(home).as_posix()
        for step in steps
        for pattern in step.touches
        for path in home.glob(pattern)
        if path.is_file() and not path.is_symlink()
    }
    try:
        return planned(steps, {name: (home / name).read_bytes() for name in names})
    except StepFailed as error:
        raise ConfigError(
            f"this home can't be brought up to date, and nothing was changed: {error}. "
            "Until that is done, the Vigil that it was last used with goes on working there"
        ) from error


def bring_up(
    home: Path, steps: Sequence[UpgradeStep] = STEPS, passed: Passed = lambda point: None
) -> Upgraded | None:
    """Take the steps that a home hasn't seen; None: it has seen all.

    Args:
        passed: called between any two writes.

    Raises:
        ConfigError: a step can't be taken, or a newer Vigil used the home; nothing is changed.
        OSError: it can't be written. Repeated, it goes on.
    """
    finished = _finish(home, passed)
    left = pending(home, steps)
    found = store_format.check_home(home)
    if not left and found is not None:
        return finished
    plan = plan_of(home, left)
    after = StoreFormat(format=FORMAT, vigil=__version__, step=len(steps))
    if not plan.changed:
        store_format.write(home, after)
        return finished
    _decide(home, found, after, plan, passed)
    return _finish(home, passed)


def back(home: Path) -> Upgraded:
    """Put back what the last upgrade changed, so that the version from before goes on.

    Raises:
        ConfigError: there is nothing to put back.
    """
    folder = next((done.kept for done in kept(home) if done.kept), None)
    if folder is None:
        raise ConfigError(f"nothing in {home} was changed by an upgrade")
    plan = _read(folder)
    for name in sorted({*plan.was, *plan.will}):
        _put(folder / "old" / name, home / name)
    before = plan.before or StoreFormat(format=1, vigil=plan.after.vigil)
    store_format.write(home, before)
    shutil.rmtree(folder)
    return Upgraded(steps=plan.steps, kept=None)


def kept(home: Path) -> list[Upgraded]:
    """Return the upgrades that changed files, newest first. Raises: ConfigError."""
    numbers = (path.name.removeprefix(KEPT) for path in home.glob(f"{KEPT}*"))
    # What a person made of one, "before-upgrade-1.old", is theirs.
    newest = sorted((int(one) for one in numbers if re.fullmatch("[0-9]{1,9}", one)), reverse=True)
    folders = [home / f"{KEPT}{number}" for number in newest]
    return [Upgraded(steps=_read(folder).steps, kept=folder) for folder in folders]


def in_words(done: Upgraded | None) -> str:
    """Say what was done to a home."""
    if done is None:
        return "Nothing was to be changed."
    steps = "; ".join(WHY.get(name, name) for name in done.steps)
    kept = f" What was changed is kept in {done.kept}: `vigil upgrade --back` puts it back."
    return f"Brought up to date: {steps}.{kept if done.kept else ''}"


def _decide(
    home: Path, before: StoreFormat | None, after: StoreFormat, plan: Planned, passed: Passed
) -> None:
    staged = home / STAGED
    shutil.rmtree(staged, ignore_errors=True)
    was = [name for name in plan.changed if (home / name).exists()]
    for name in was:
        write_private(staged / "old" / name, (home / name).read_bytes())
        passed(f"kept {name}")
    will = {name: data for name, data in plan.changed.items() if data is not None}
    for name, data in will.items():
        write_private(staged / "new" / name, data)
        passed(f"staged {name}")
    told = DecidedUpgrade(
        steps=tuple(step.name for step in plan.steps),
        before=before,
        after=after,
        was=tuple(was),
        will=tuple(will),
    )
    write_private(staged / PLAN, msgspec.json.encode(told))
    _sync(staged)
    passed("staged")
    staged.rename(home / DECIDED)
    _sync(home)
    passed("decided")


def _finish(home: Path, passed: Passed) -> Upgraded | None:
    """Carry out what was decided, from its beginning: each part of it may be repeated."""
    folder = home / DECIDED
    if not folder.exists():
        return None
    plan = _read(folder)
    for name in sorted({*plan.was, *plan.will}):
        _put(folder / "new" / name, home / name)
        passed(f"put {name}")
    store_format.write(home, plan.after)
    passed("noted")
    beside = home / f"{KEPT}{plan.before.step + 1 if plan.before else 1}"
    shutil.rmtree(beside, ignore_errors=True)
    folder.rename(beside)
    _sync(home)
    passed("done")
    return Upgraded(steps=plan.steps, kept=beside)


def _read(folder: Path) -> DecidedUpgrade:
    try:
        return msgspec.json.decode((folder / PLAN).read_bytes(), type=DecidedUpgrade)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{folder} can't be read ({reason_of(error)}): restore a backup"
        ) from error


def _put(source: Path, target: Path) -> None:
    """Make a file what another is: that, or not there."""
    if source.exists():
        write_private(target, source.read_bytes())
    else:
        target.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
