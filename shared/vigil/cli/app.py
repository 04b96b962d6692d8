"""The commands of `vigil`."""

from __future__ import annotations

from .accounts import calendar, channels, contacts, mail, mailbox, other_agents, push
from .admin import (
    backup,
    console,
    erase,
    evals,
    export,
    health,
    import_,
    provision,
    replay,
    skills,
    token,
    upgrade,
)
from .board import bulletin, kinds, trust
from .chat import commands as talking
from .chat import delete, shelf
from .commands import (
    approvals,
    cost,
    dead,
    jobs,
    mcp,
    memory,
    pause,
    person,
    status,
    why,
)
from .commands import (
    signals as watching,
)
from .cron import autonomy, facts
from .cron import commands as recurring
from .doctor import command
from .editors import command as editors
from .frame import START, command_line, commands, run
from .setup import agents, models, settings, wizard
from .setup import up as running

app = command_line()

_TALK = "Talk"
_LOOK = "Look"
_REMEMBER = "Remember"
_WORK = "Work"
_STEER = "Steer"
_KEEP = "Keep and erase"

app.command(rich_help_panel=START)(running.up)
app.command(rich_help_panel=START)(running.down)
app.command(rich_help_panel=START)(wizard.setup)
app.command(rich_help_panel=START)(status.status)
app.command(rich_help_panel=START)(command.doctor)
app.add_typer(health.app, name="health", rich_help_panel=START)
app.add_typer(settings.app, name="config", rich_help_panel=START)
app.add_typer(models.app, name="models", rich_help_panel=START)
app.add_typer(agents.app, name="agents", rich_help_panel=START)
app.command(rich_help_panel=_LOOK)(console.console)
app.command(rich_help_panel=_TALK)(talking.chat)
app.command(rich_help_panel=_TALK)(talking.send)
app.command(rich_help_panel=_TALK)(editors.acp)
app.add_typer(channels.app, name="channels", rich_help_panel=_TALK)
app.add_typer(mail.app, name="mail", rich_help_panel=_TALK)
app.add_typer(calendar.app, name="calendar", rich_help_panel=_TALK)
app.add_typer(push.app, name="push", rich_help_panel=_TALK)
app.add_typer(mailbox.app, name="mailbox", rich_help_panel=_TALK)
app.add_typer(contacts.app, name="contacts", rich_help_panel=_REMEMBER)
app.command(rich_help_panel=_LOOK)(shelf.sessions)
app.command(rich_help_panel=_TALK)(shelf.rename)
app.command(rich_help_panel=_TALK)(shelf.archive)
app.command(rich_help_panel=_LOOK)(status.timers)
app.command(rich_help_panel=_LOOK)(why.why)
app.command(rich_help_panel=_LOOK)(facts.facts)
app.command(rich_help_panel=_LOOK)(replay.replay)
app.command("eval", rich_help_panel=_LOOK)(evals.eval_)
app.command(rich_help_panel=_LOOK)(cost.cost)
status.tail.command("signals")(watching.tail_signals)
app.add_typer(status.tail, name="tail", rich_help_panel=_LOOK)
app.command(rich_help_panel=_LOOK)(status.version)
app.add_typer(memory.app, name="memory", rich_help_panel=_REMEMBER)
app.command(rich_help_panel=_REMEMBER)(bulletin.bulletin)
app.add_typer(kinds.GROUPS["preferences"], name="preferences", rich_help_panel=_REMEMBER)
app.add_typer(mcp.app, name="mcp", rich_help_panel=_REMEMBER)
app.add_typer(other_agents.app, name="a2a", rich_help_panel=_REMEMBER)
app.add_typer(skills.app, name="skills", rich_help_panel=_REMEMBER)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_WORK)
app.add_typer(kinds.GROUPS["tasks"], name="tasks", rich_help_panel=_WORK)
app.add_typer(kinds.GROUPS["goals"], name="goals", rich_help_panel=_WORK)
app.add_typer(kinds.GROUPS["actions"], name="actions", rich_help_panel=_WORK)
app.add_typer(recurring.app, name="cron", rich_help_panel=_WORK)
app.add_typer(autonomy.app, name="autonomy", rich_help_panel=_WORK)
app.command(rich_help_panel=_STEER)(person.me)
app.add_typer(cost.budget, name="budget", rich_help_panel=_STEER)
app.command(rich_help_panel=_STEER)(pause.pause)
app.command(rich_help_panel=_STEER)(pause.resume)
app.command(rich_help_panel=_STEER)(pause.stop)
app.add_typer(approvals.app, name="approvals", rich_help_panel=_STEER)
app.add_typer(kinds.GROUPS["grants"], name="grants", rich_help_panel=_STEER)
app.add_typer(trust.app, name="trust", rich_help_panel=_STEER)
app.add_typer(dead.app, name="dead", rich_help_panel=_STEER)
app.add_typer(token.app, name="token", rich_help_panel=_STEER)
app.command(rich_help_panel=_KEEP)(delete.delete)
app.command(rich_help_panel=_KEEP)(backup.backup)
app.command(rich_help_panel=_KEEP)(backup.restore)
app.command(rich_help_panel=_KEEP)(upgrade.upgrade)
app.command(rich_help_panel=_KEEP)(export.export)
app.command("import", rich_help_panel=_KEEP)(import_.import_)
app.command(rich_help_panel=_KEEP)(erase.erase)
app.command(rich_help_panel=_KEEP)(memory.rebuild)
app.command(rich_help_panel="For deployments")(running.serve)
app.command(rich_help_panel="For deployments")(provision.provision)


def main() -> None:
    """Run the command line with all of its commands."""
    run(app)


__all__ = ["app", "commands", "main"]
