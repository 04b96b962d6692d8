"""What `vigil doctor` says of mailboxes and networks, by those who read them at present."""

from __future__ import annotations

from functools import partial
from typing import Any

from vigil.channels.contract import Channel
from vigil.checks import Check, ok, warn
from vigil.doctor.channels import Examine
from vigil.errors import VigilError
from vigil.settings.config import Settings
from vigil.settings.live.renewal import NOT_TAKEN_IN
from vigil.words.amounts import count_of

from ..accounts import mail
from ..accounts.paired import HEARS
from ..admin import operator
from ..admin.operator import States


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check for each account that hears, by name."""
    hearing = [name for name, one in mail.accounts_of(settings).items() if one.imap_host]
    states = operator.asked_once(settings, HEARS)
    found: dict[str, Examine] = {
        f"mailbox {name}": partial(_mailbox, name, states) for name in hearing
    }
    for name in networks_of(settings):
        found[f"network {name}"] = partial(_network, name, states)
    return found


def networks_of(settings: Settings) -> dict[str, Channel]:
    """Return the accounts with chat networks, by name."""
    found = sorted(settings.config.channels.items())
    is_mail = mail.accounts_of(settings)
    return {name: one for name, one in found if one.paired_at and name not in is_mail}


def _network(name: str, states: States, _: Settings) -> Check | None:
    """How an account with a network is; None: nothing runs that could tell."""
    try:
        state = states().get(name)
    except VigilError:
        return None
    return network_of(state)


def network_of(state: dict[str, Any] | None) -> Check:
    """Return what the state of an account with a network means.

    >>> network_of({"state": "listening", "problem": "", "outside": 1, "refused": 0}).found
    'listening; of others 1 message or invitation'
    """
    if state is None:
        return warn("no gateway reads it", NOT_TAKEN_IN)
    found = str(state["state"])
    if outside := state["outside"]:
        found += (
            f"; of others {count_of(outside, 'message or invitation', 'messages and invitations')}"
        )
    if refused := state["refused"]:
        found += f"; {refused} of people could not be taken in"
    if state["problem"]:
        return warn(f"{found}: {state['problem']}", "see docs/matrix.md")
    return ok(found)


def _mailbox(name: str, states: States, _: Settings) -> Check | None:
    """How a mailbox is; None: nothing runs that could tell."""
    try:
        state = states().get(name)
    except VigilError:
        return None
    return check_of(state)


def check_of(state: dict[str, Any] | None) -> Check:
    """Return what a mailbox's state means.

    >>> check_of({"state": "listening", "problem": "", "outside": 3, "refused": 0}).found
    'listening; 3 mails of others, which got nothing'
    """
    if state is None:
        return warn("no gateway reads it", NOT_TAKEN_IN)
    found = str(state["state"])
    if outside := state["outside"]:
        found += f"; {count_of(outside, 'mail')} of others, which got nothing"
    if unproven := state.get("unproven", 0):
        found += f" ({unproven} as if from a paired address, which nothing proves: see authserv_id)"
    if refused := state["refused"]:
        found += f"; {refused} of people could not be taken in, and are in the mailbox"
    if state["problem"]:
        return warn(f"{found}: {state['problem']}", "see docs/mail.md")
    return ok(found)
