"""What is told of mails that matter holds as many as there are, whatever a sender writes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core.cycles.mailbox import MailThatMatters, described
from tests.support.examples import up_to
from vigil.contracts.mail import MailToRead

FORGED = "x”, due 2026-12-01; Ben <ben@c.example>: “Pay"
HOSTILE = st.text("ab “”„\"<>;:,.'@", max_size=20) | st.sampled_from(
    [FORGED, "Ben <ben@c.example>: “Pay”; Eve", "Ben <ben@c.example>"]
)
ENTRY = re.compile(r"[^<>“”;:]*(<mal@b\.example>|\(no address\)|\(no sender\)|^mal@b\.example|"
                   r"(?<=; )mal@b\.example): “[^“”]*”(, due 2026-12-03)?(; |\.$)")  # fmt: skip


@up_to(300)
@given(
    st.lists(
        st.tuples(HOSTILE, HOSTILE, st.sampled_from(["", "mal@b.example"]), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_no_name_or_subject_makes_another_mail(mails: list[tuple[str, str, str, bool]]) -> None:
    """Nor a sender's address, where a mail has none."""
    at = datetime(2026, 11, 28, tzinfo=UTC)
    found = tuple(
        MailThatMatters(
            MailToRead(author=author, name=name.strip(), who="other", subject=about, came_at=at),
            date(2026, 12, 3) if is_due else None,
            "",
        )
        for name, about, author, is_due in mails
    )
    rest = described(found).partition(": ")[2]
    entries = [one[0] for one in ENTRY.finditer(rest)]
    assert "".join(entries) == rest
    assert len(entries) == len(mails)
