"""Read a plan, give up what it takes away, start the command.

Inside bubblewrap this process becomes the command. Without namespaces it stays beside it, as the
one that ends whatever the command leaves behind.
"""

from __future__ import annotations

import os
import sys

from . import kernel, limits
from .plan import LaunchPlan, plan_of

TYPE_CHECKING = False  # importing it would be the slowest part of a start
if TYPE_CHECKING:
    from collections.abc import Callable

SIGKILL = 9
NOT_STARTED = 126
"""The exit code when the box couldn't be made; the reason is on standard error."""
NOT_FOUND = 127


def main() -> None:
    """Run the command of the command line, by the plan before it."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # not every event loop has closed what it had open
    plan = plan_of(sys.argv[1:])
    kernel.default_signals()
    try:
        limits.yield_to_others()
        if plan.parent is None:
            become(plan)
        else:
            from . import tree

            tree.watch(plan.parent, lambda: become(plan))
    except OSError as error:
        print(f"the sandbox can't be made: {error}", file=sys.stderr)
        sys.exit(NOT_STARTED)


def become(plan: LaunchPlan) -> None:
    """Confine this process and replace it by the command."""
    environ = {name: os.environ[name] for name in plan.variables if name in os.environ}
    is_alone = plan.parent is not None
    if is_alone:  # as ourselves: the way may lead through folders of ours
        os.chdir(plan.workspace)
    os.umask(0o077)
    restrictions = _restrictions(plan)
    os.get_exec_path(environ)  # has imported what `execvpe` needs before Python can't be read
    limits.set_limits(plan.limits, plan.uid, is_shared=is_alone)
    limits.change_user(plan.uid, keep_reading=bool(plan.rules))
    if not is_alone:  # as who may enter it: root has no right left here
        os.chdir(plan.workspace)
    if is_alone:  # only now: becoming somebody else forgets it
        kernel.prctl(kernel.PR_SET_PDEATHSIG, SIGKILL)
    kernel.no_new_privileges()
    for restrict in restrictions:
        restrict()
    try:
        os.execvpe(plan.command[0], plan.command, environ)
    except OSError as error:
        print(f"{plan.command[0]}: {_reason(plan.command[0], error)}", file=sys.stderr, flush=True)
        os._exit(NOT_FOUND)


def _reason(program: str, error: OSError) -> str:
    """Say why a program could not be started; the kernel says "No such file" of its runner, too."""
    try:
        with open(program, "rb") as file:
            line = file.read(256).partition(b"\n")[0].decode("utf-8", "replace")
    except OSError:
        return str(error.strerror)
    what = line[2:].strip() if line.startswith("#!") else "its loader"
    return f"it is there, but what runs it can't be: {what}: {error.strerror}"


def _restrictions(plan: LaunchPlan) -> list[Callable[[], None]]:
    """Prepare what this process will put upon itself, while it still may read and open things."""
    prepared: list[Callable[[], None]] = []
    if plan.rules:
        from . import landlock

        ruleset = landlock.rules(plan.rules)
        prepared.append(lambda: landlock.restrict(ruleset))
    if plan.filter:
        from . import seccomp

        prepared.append(lambda: seccomp.restrict(plan.filter))
    return prepared
