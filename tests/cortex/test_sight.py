"""What a model sees of files: which, for how long, at what price, and whom they sway (issue 14)."""

from __future__ import annotations

import base64
import contextlib
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core import Policy
from services.cortex.core.context.window import tokens_of_row
from services.cortex.core.draft import sight
from services.cortex.core.draft.sight import Sight, crowded_out, tokens_of
from services.cortex.core.draft.tokens import tokens_of_text
from services.cortex.models.messages import messages_of
from services.cortex.policy import policy_of
from services.cortex.thought.budget import estimate
from services.cortex.thought.transcript import transcript
from tests.cortex.asked import NOW, request
from tests.cortex.driver import KEY, Driver, answer, call
from tests.cortex.test_core_approvals import asked_driver, run
from tests.support.examples import up_to
from vigil.attachments.examine import NAME_LENGTH_MAX, examined
from vigil.contracts import (
    Attachment,
    AttachmentBlock,
    Row,
    TextBlock,
    Turn,
    UserMessage,
    UserMessagePayload,
    decode_turn,
    encode,
)
from vigil.errors import InvalidInput
from vigil.settings.config import Config, read
from vigil.settings.models import takes_of
from vigil.subjects import SessionKey

SEES: Final = Sight(takes=frozenset(["image", "pdf"]), tokens_max=100_000)
PHOTO: Final = Attachment(
    hash="0f", name="cat.png", type="image/png", size=9000, width=800, height=600
)
PLAN: Final = Attachment(hash="1f", name="plan.pdf", type="application/pdf", size=40_200, pages=2)
BOOK: Final = Attachment(hash="2f", name="b.pdf", type="application/pdf", size=40_200, pages=100)


def driver_of(*answers: Any, sees: Sight = SEES) -> Driver:
    replies = list(answers)
    policy = Policy(autonomy_enabled=True, sight=sees)
    return Driver(lambda _: replies.pop(0) if replies else answer("ok"), policy)


def attach(driver: Driver, text: str, *files: Attachment) -> list[Turn]:
    payload = UserMessagePayload(text=text, attachments=files)
    event = UserMessage(id=text, session_key=KEY, created_at=driver.now, payload=payload)
    return driver.feed(event)


def shown(turns: list[Turn]) -> tuple[Any, ...]:
    (row,) = (row for turn in turns for row in turn.rows if row.source == "person")
    return row.blocks


# ---------------------------------------------------------------- what is shown


def test_the_history_holds_what_a_file_is_and_not_the_file() -> None:
    driver = driver_of()
    turns = attach(driver, "fits?", PLAN, PHOTO)
    blocks = (TextBlock(text="fits?"), AttachmentBlock(file=PLAN), AttachmentBlock(file=PHOTO))
    assert shown(turns) == blocks
    assert shown([decode_turn(encode(turn)) for turn in turns]) == blocks
    assert sum(len(encode(row)) for turn in turns for row in turn.rows) < 1500


@pytest.mark.parametrize(
    ("sees", "files", "words"),
    [
        (Sight(), [PHOTO], ["an image, 800x600 pixels, 9 kB; you can't read it"]),
        (
            Sight(takes=frozenset(["image"]), tokens_max=5000),
            [PLAN],
            ["a PDF file, 2 pages, 41 kB; you can't read it"],
        ),
        (SEES, [BOOK], ["a PDF file, 100 pages, 41 kB; it's too long for you to read"]),
        (
            Sight(takes=SEES.takes, tokens_max=10_000),
            [PLAN, PLAN],
            ["a PDF file, 2 pages, 41 kB; it's too long for you to read"],
        ),
    ],
    ids=["untaken", "no_pdf", "too_long", "together"],
)
def test_what_is_not_shown_is_told_without_its_name_and_why(
    sees: Sight, files: list[Attachment], words: list[str]
) -> None:
    """A PDF file of 100 pages is no error for a model with a smaller window."""
    text, *others = shown(attach(driver_of(sees=sees), "fits?", *files))
    assert text.text == "\n".join(["fits?", *(f"[attached: {one}]" for one in words)])
    assert len(others) == len(files) - len(words)


@given(st.text(min_size=1), st.sampled_from(["utf-8", "utf-16"]))
@up_to(300)
def test_a_text_takes_no_more_than_its_estimate(text: str, code: str) -> None:
    """Of whichever scripts, and of however many lines."""
    data = text.encode(code)
    with contextlib.suppress(InvalidInput):
        file = examined("🗺" * NAME_LENGTH_MAX, data)
        files = {file.hash: base64.b64encode(data).decode()}
        ((block,),) = (m["content"] for m in messages_of([row(file)], files))
        assert tokens_of(file) >= tokens_of_text(block["text"])
        assert Sight(tokens_max=tokens_of(file)).obstacle(file) == "", "whatever the model takes"
        assert Sight(tokens_max=tokens_of(file) - 1).obstacle(file) == sight.TOO_LONG


def row(file: Attachment) -> Row:
    return Row(role="user", source="person", blocks=(AttachmentBlock(file=file),), at=NOW)


@pytest.mark.parametrize(
    ("models", "name", "takes"),
    [
        ({}, "", {"image", "pdf"}),
        ({}, "claude-opus-5-5", {"image", "pdf"}),
        ({}, "rehearsal", set()),
        ({"m": {"model": "claude-opus-5-5"}}, "m", {"image", "pdf"}),
        ({"m": {"model": "qwen3:8b", "base_url": "http://127.0.0.1:1"}}, "m", set()),
        ({"m": {"base_url": "http://127.0.0.1:1", "takes": ["image"]}}, "m", {"image"}),
        ({"m": {"provider": "openai"}}, "m", {"image", "pdf"}),
        ({"m": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1"}}, "m", set()),
        ({"m": {"provider": "openai", "takes": []}}, "m", set()),
    ],
)
def test_a_model_takes_what_its_section_says(
    models: dict[str, Any], name: str, takes: set[str]
) -> None:
    config: Config = read({"models": models, "model": {"main": name}})
    assert takes_of(config, name) == takes
    assert policy_of(config, SessionKey.parse(KEY)).sight.takes == takes


# ---------------------------------------------------------------- whom it sways


def test_what_a_file_shows_may_be_by_anybody() -> None:
    """X-3, ADR 31: a photo of a letter may tell the model what to do, as a page may."""
    kept = call("schedule_followup", delay_seconds=60, reason="obey", keep=True)
    driver = driver_of(answer(kept), answer("Asked."), answer("Later."))
    attach(driver, "what does it say?", PHOTO)
    assert driver.state.follow_ups == {}
    (approval,) = driver.state.approvals.values()
    assert approval.is_tainted
    driver.user("and now?")
    assert driver.turns[-1].is_swayed


def test_what_is_not_shown_sways_nobody() -> None:
    """ADR 31: so nothing of it is there, not even the name, which is whose it was before."""
    kept = call("schedule_followup", delay_seconds=60, reason="r", message="go", keep=True)
    driver = driver_of(answer(kept), answer("Done."), sees=Sight())
    attach(driver, "remind me", PHOTO)
    assert list(driver.state.approvals) == []
    (follow_up,) = driver.state.follow_ups.values()
    assert not follow_up.is_tainted


@pytest.mark.parametrize("is_tainted", [False, True])
def test_a_tools_image_sways_as_the_tool_does(*, is_tainted: bool) -> None:
    """X-3: one of the agent's own files is its own; what its model doesn't take is named."""
    driver = driver_of(answer(call("memory_recall", query="q")), answer("I see."))
    driver.user("look")
    driver.result(content="there", attachments=(PHOTO, BOOK), is_tainted=is_tainted)
    rows = [row for turn in driver.turns for row in turn.rows if row.source == "tool"]
    (result, image) = rows[-1].blocks
    assert result.content == (
        "there\n[attached: a PDF file, 100 pages, 41 kB; it's too long for you to read]"
    )
    assert image == AttachmentBlock(file=PHOTO, is_trusted=not is_tainted)
    assert bool(driver.state.taint) is is_tainted


@pytest.mark.parametrize("is_tainted", [False, True])
def test_so_does_the_image_of_a_call_that_nobody_waited_for(*, is_tainted: bool) -> None:
    """X-2: the person let it run when the exchange was over."""
    driver = asked_driver(policy=Policy(autonomy_enabled=True, sight=SEES))
    driver.decide("accept")
    (effect,) = run(driver)
    driver.result(effect.id, "wiped", attachments=(PHOTO,), is_tainted=is_tainted)
    (row,) = (row for turn in driver.turns for row in turn.rows if row.source == "task")
    assert row.blocks[1] == AttachmentBlock(file=PHOTO, is_trusted=not is_tainted)
    assert bool(driver.state.taint) is is_tainted


# ---------------------------------------------------------------- what it takes


@pytest.mark.parametrize(
    ("file", "tokens"),
    [
        (PHOTO, 1200),
        (msgspec.structs.replace(PHOTO, width=10, height=10), 300),
        (msgspec.structs.replace(PHOTO, width=8000, height=5000), 4800),
        (PLAN, 9200),
        (msgspec.structs.replace(PLAN, pages=0), 5 * 4600),
        (msgspec.structs.replace(PLAN, pages=0, size=3_000_000), 100 * 4600),
    ],
)
def test_a_file_counts_in_history_and_budget(file: Attachment, tokens: int) -> None:
    """C-9, I-4: reserved before the call, and what the window is measured by."""
    block = AttachmentBlock(file=file)
    row = Row(role="user", source="person", at=NOW, blocks=(block,))
    without = msgspec.structs.replace(row, blocks=())
    assert tokens_of(file) == tokens
    for taken in (
        tokens_of_row(row) - tokens_of_row(without),
        estimate(request(row)).input_tokens - estimate(request(without)).input_tokens,
    ):
        assert tokens < taken < tokens + 200


def test_a_summary_is_made_of_words() -> None:
    blocks = (TextBlock(text="see"), AttachmentBlock(file=PLAN))
    row = Row(role="user", source="person", at=NOW, blocks=blocks)
    assert transcript([row]).endswith("with it came a file:\n| plan.pdf, 2 pages, 41 kB")


def test_many_files_are_summed_up() -> None:
    """I-4: they fill the window, whatever few bytes they take in the history."""
    driver = driver_of()
    for n in range(8):
        attach(driver, f"see {n}", msgspec.structs.replace(PHOTO, width=8000))
    window = driver.history.window(0)
    assert driver.history.plan([], window) is None
    small = msgspec.structs.replace(window, context_tokens=34_000)
    plan = driver.history.plan([], small)
    assert plan is not None
    assert plan.kind == "summarise"
    cut = driver.history.cut(plan)
    assert "cat.png" in transcript([row for chunk in cut.chunks for row in chunk.rows])


FILES: Final = st.lists(
    st.builds(
        Attachment,
        hash=st.just("0f"),
        name=st.just("a"),
        type=st.sampled_from(["image/png", "application/pdf"]),
        size=st.integers(1, 4_000_000),
        pages=st.integers(0, 100),
    ),
    max_size=60,
)


@given(FILES)
@up_to(300)
def test_a_request_holds_what_its_server_takes(files: list[Attachment]) -> None:
    left = files[crowded_out(files) :]
    assert len(left) <= sight.FILES_MAX
    assert sum(map(sight.pages_of, left)) <= sight.PAGES_MAX
    assert sum(file.size for file in left) <= sight.BYTES_MAX
    assert bool(left) == bool(files), "the newest one is always shown"


def test_what_is_left_out_changes_seldom() -> None:
    """L-23: history is the same bytes from call to call, so most calls read it from the cache."""
    starts = [crowded_out([PHOTO] * count) for count in range(1, 101)]
    assert starts == sorted(starts)
    assert len(set(starts)) <= 10
