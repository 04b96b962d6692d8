"""A person's own mailbox, followed on a real Dovecot (issue: the agent's view of a mailbox)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mail_servers import MailServers, running_mail_servers
from tests.support.mailboxes import entries, mail, running_mailbox_world, texts


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    with running_mail_servers() as running:
        yield running


async def test_each_mail_is_stored_once_with_what_rules_say_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: MailServers
) -> None:
    """New mail becomes a record at once, each once; the mailbox stays as it is."""
    async with running_mailbox_world(tmp_path, monkeypatch, servers) as (world, own):
        own.put(
            mail("Plan", "Shall we?\n\n> old"),
            mail("News", List_Unsubscribe="<https://c.example/u>", Precedence="bulk"),
            mail("Away", Auto_Submitted="auto-replied"),
        )
        came = await own.stored(world.admin, 3)
        assert texts(came) == [("personal", "Plan"), ("newsletter", "News"), ("auto_reply", "Away")]
        assert (came[0].author, came[0].name) == ("ben@c.example", "Ben Miller")
        assert came[0].text == "Shall we?\n\n[1 quoted line]"
        assert came[1].text == ""
        assert not any(b"Seen" in one for one in servers.flags(own.box))
        await world.stack.stop("executor")
        own.put(mail("Later"))
        await world.stack.start("executor")
        assert len(await own.stored(world.admin, 4)) == 4
        uids = [one.uid for one in await entries(world.admin) if one.mail]
        assert uids == sorted(set(uids))
