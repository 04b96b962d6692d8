"""`vigil chat` and `vigil send`: for a person at a terminal, and for a pipe.

A chat without a thread is the person's home: there the agent reports what belongs to no other
conversation. One with a new thread tells how to go on with it. From a pipe, each line
is said and answered before the next one; follow-ups that arrive meanwhile are printed too, and
with `--wait` also those that come later.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import uuid4

import typer

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.subjects import SessionKey
from vigil.teams import DEFAULT_AGENT, TEAM
from vigil.words import slash
from vigil.words.nearest import meant

from .. import exits, options, output
from ..tables import Result

CONFIRM_S: Final = 10.0
SHOW_S: Final = 3.0
UNSTORED_SHOWN: Final = 60
"""Characters of what may not be stored that are shown."""


def new_thread() -> str:
    """Return the name of a thread that nobody used before."""
    return f"chat-{uuid4().hex[:12]}"


def chat(
    agent: options.Agent = "vigil",
    thread: options.Thread = None,
    new: Annotated[bool, typer.Option("--new", help="Begin a thread of its own.")] = False,
    wait: Annotated[
        float,
        typer.Option(min=0, help="From a pipe: seconds to stay for follow-ups after the end."),
    ] = 0.0,
    timeout: Annotated[
        float, typer.Option(min=1, help="From a pipe: seconds to wait for an answer.")
    ] = 300.0,
    json: options.Json = False,
) -> None:
    """Talk with an agent, by default at home, where it reports to you. Ctrl-D ends.

    Ctrl-C stops an answer; when there is none, it leaves. A line that ends with \\ goes on.

    What begins with a slash is an order to the conversation itself: /help lists them, such as /new,
    /stop, /why, /remind, /edit TEXT, /reply TEXT and /attach PATH. From a pipe none is: each line
    is said as it is.
    """
    client = options.client()
    if new and thread is not None:
        raise typer.BadParameter("give --thread or --new, not both")
    key = options.session_of(client, agent, new_thread() if new else thread)
    is_person = sys.stdin.isatty() and output.is_screen(sys.stdout) and not json
    if is_person:
        who = f"with the team of {key.agent}" if key.user == TEAM else key.user
        output.message(f"You are {who}, in thread {key.thread}. Ctrl-D ends.")
        _tell_if_new(client, key.agent)
    more = "" if agent == "vigil" else f" --agent {agent}"
    hint = "Go on with: vigil chat --thread {}" + more
    try:
        if is_person:
            last = _with_person(client, key)
            new, key = new or last != key, last
        else:
            asyncio.run(_with_pipe(client, key, wait_s=wait, timeout_s=timeout, is_json=json))
    except KeyboardInterrupt:
        if is_person and new:
            output.message(hint.format(key.thread))
        raise
    if new:
        output.message(hint.format(key.thread))


def _tell_if_new(client: Client, agent: str) -> None:
    """Say that an agent begins with what is said to it: a mistyped name would be one, too."""
    if agent != DEFAULT_AGENT and agent not in (there := client.agent_names()):
        output.message(f"No agent is called {agent} yet{meant(agent, there)}")
        output.message("It begins with what you say.")


def _with_person(client: Client, key: SessionKey) -> SessionKey:
    from .interrupts import Interrupted

    try:
        return asyncio.run(_at_terminal(client, key))
    except Interrupted as left:
        raise KeyboardInterrupt from left
    except KeyboardInterrupt:
        output.message("")  # the cursor is behind what the terminal shows for it
        raise


async def _at_terminal(client: Client, key: SessionKey) -> SessionKey:
    """Talk until they end it; return where they talked last."""
    from . import keyboard as keys
    from .screen import SharedScreen, TerminalScreen
    from .terminal.calls import LeftCalls
    from .terminal.modes import terminal_restored

    asyncio.get_running_loop().set_default_executor(LeftCalls())
    keyboard = keys.Keyboard()
    drawn = TerminalScreen(key.agent, keyboard.typed, keyboard.point)
    keyboard.entered, keyboard.ended = drawn.line_entered, drawn.input_ended
    screen = SharedScreen(drawn, keyboard.turns)
    with terminal_restored(screen.go_on, has_readline=keys.is_readline()) as modes:
        if modes is not None:
            keyboard.echo = modes.echo
            modes.echo(False)
        try:
            while (following := await _in_one(client, key, keyboard, screen)) is not None:
                key = following
        finally:
            keyboard.turns.end()
    return key


async def _in_one(client: Client, key: SessionKey, keyboard: Any, screen: Any) -> SessionKey | None:
    """Talk in one conversation; return the one that they go on in."""
    from .conversation import Conversation, until_done
    from .interrupts import Interrupted, Interrupts
    from .orders import Orders

    conversation = Conversation(client, str(key), screen)
    orders = Orders(client, key, screen, conversation)
    interrupts = Interrupts(client, str(key), conversation, screen)
    keyboard.remember(await asyncio.to_thread(_said_before, client, str(key)))

    async def talk() -> None:
        await conversation.wait_open(CONFIRM_S)
        keyboard.start()
        async for line in keyboard:
            if line.strip():
                await orders.take(line)
            if orders.is_over:
                break
        interrupts.is_ending = True
        if not await conversation.wait_confirmed(CONFIRM_S):
            raise exits.Timeout("not everything you said could be stored: no connection")

    try:
        await interrupts.until_done(until_done(talk, conversation))
    except (Interrupted, VigilError):
        if not interrupts.is_ending:
            keyboard.turns.end()
            output.message("")  # the cursor is behind the prompt
        for text in conversation.unconfirmed:
            output.message(f"It may not be stored: {output.printable(text)[:UNSTORED_SHOWN]!r}")
        raise
    if not orders.is_new_wanted:
        return None
    following = SessionKey(key.user, key.agent, new_thread())
    screen.notice(f"This is a new conversation, {following.thread}.")
    return following


def _said_before(client: Client, key: str) -> list[str]:
    """Return what the person said here before, as far as it can be asked; the oldest first."""
    try:
        return [one["text"] for one in client.session(key)["messages"] if one["role"] == "user"]
    except VigilError:
        return []


async def _with_pipe(
    client: Client, key: SessionKey, *, wait_s: float, timeout_s: float, is_json: bool
) -> None:
    from .conversation import Conversation, until_done
    from .keyboard import Pipe
    from .screen import JsonScreen, PlainScreen
    from .terminal.calls import LeftCalls

    asyncio.get_running_loop().set_default_executor(LeftCalls())
    screen = JsonScreen() if is_json else PlainScreen(key.agent)
    conversation = Conversation(client, str(key), screen)

    async def talk() -> None:
        if not await conversation.wait_open(timeout_s):
            raise exits.NotReady("no connection to the session")
        lines = Pipe()
        lines.start()
        async for line in lines:
            if told := slash.said_as_words(line):
                screen.notice(told)
            if line.strip():
                await _say_and_hear(client, key, conversation, line.strip(), timeout_s)
        if wait_s:
            await asyncio.sleep(wait_s)

    await until_done(talk, conversation)


async def _say_and_hear(
    client: Client, key: SessionKey, conversation: Any, text: str, timeout_s: float
) -> None:
    """Say one line, and wait until all that it caused is shown."""
    answer = await asyncio.to_thread(
        client.chat, text, user=key.user, thread=key.thread, agent=key.agent
    )
    event_id = answer["event_id"]
    if "messages" not in answer:
        # It takes longer than the gateway waits; the answer comes on the socket.
        if not await conversation.wait_until(lambda: conversation.has_answer(event_id), timeout_s):
            raise exits.Timeout(f"no answer in {timeout_s:g} s; what you said is stored")
        return
    messages = answer["messages"]
    if not await conversation.wait_shown({m["id"] for m in messages}, SHOW_S):
        for message in messages:
            conversation.show({"type": "message", "caused_by": event_id, **message})


def send(
    text: Annotated[str, typer.Argument(help="What to say; - reads it from stdin.")],
    agent: options.Agent = "vigil",
    thread: options.Thread = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the answer and print it.")
    ] = True,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="With --no-wait: a name for this message; it is stored once."),
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, readable=True, help="An image, a PDF or a text."),
    ] = None,
) -> Result:
    """Say one thing, by default in a new thread, and print the answer."""
    if text == "-":
        text = sys.stdin.read()
    if idempotency_key is not None and wait:
        raise typer.BadParameter("--idempotency-key goes with --no-wait")
    client = options.client()
    key = options.session_of(client, agent, thread or new_thread())
    files = [client.upload(one.name, one.read_bytes())["hash"] for one in attach or ()]
    if not wait:
        stored = client.send(str(key), text, idempotency_key=idempotency_key, attachments=files)
        return Result({"session_key": str(key), **stored}, partial(_show_stored, key, stored))
    answer = client.chat(text, user=key.user, thread=key.thread, agent=key.agent, attachments=files)
    if "response" not in answer:
        end = exits.Timeout(f"no answer yet; it will be in session {key}")
        return Result(answer, lambda: None, end)
    return Result(answer, partial(_show_answer, answer, None if thread else key.thread))


def _show_stored(key: SessionKey, stored: dict[str, Any]) -> None:
    output.data(stored["event_id"])
    output.message(f"Stored in session {key}.")


def _show_answer(answer: dict[str, Any], new_thread: str | None) -> None:
    output.data(output.printable(answer["response"]))
    if new_thread is not None:
        output.message(f"Go on with: vigil send --thread {new_thread} …")
