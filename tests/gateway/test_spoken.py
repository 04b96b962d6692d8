"""What understands voice messages: right, wrong, slow and away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.spoken.sounds import ending_of
from services.gateway.spoken.transcriber import Transcriber
from tests.support.examples import up_to
from tests.support.speech_server import ENDINGS, KEY, OGG, SpeechServer
from vigil.broker.ports import free_port
from vigil.doctor.speech import speech
from vigil.errors import ConfigError, InvalidInput
from vigil.settings.config import Config, Settings
from vigil.settings.sections import SpeechSection


@pytest.fixture
async def server() -> AsyncIterator[SpeechServer]:
    async with SpeechServer().running() as found:
        yield found


def section_of(server: SpeechServer, home: Path, key: str = KEY) -> SpeechSection:
    (home / "speech.key").write_text(f"{key}\n")
    return SpeechSection(url=server.url, model="large", key_file="speech.key", timeout_s=5.0)


async def words(section: SpeechSection, home: Path, sound: bytes = OGG, language: str = "") -> str:
    transcriber = Transcriber(section, home)
    try:
        return await transcriber.words(sound, language)
    finally:
        await transcriber.close()


async def test_what_is_said_is_asked_for_with_the_language_of_whom_it_is_from(
    server: SpeechServer, tmp_path: Path
) -> None:
    server.words[OGG] = " Ruf Ben\num neun\u200b an.\n"
    section = section_of(server, tmp_path)
    assert await words(section, tmp_path, language="de-AT") == "Ruf Ben um neun an."
    assert await words(section, tmp_path) == "Ruf Ben um neun an."
    fields = {"model": "large", "response_format": "json"}
    assert server.asked == [fields | {"language": "de"}, fields]


async def test_what_is_not_understood_is_told_without_what_is_nobody_s_business(
    server: SpeechServer, tmp_path: Path
) -> None:
    """People read it in a room where others may be."""
    section = section_of(server, tmp_path)

    async def reason(sound: bytes = OGG, section: SpeechSection = section) -> str:
        with pytest.raises(InvalidInput) as raised:
            await words(section, tmp_path, sound)
        assert KEY not in str(raised.value)
        assert str(tmp_path) not in str(raised.value)
        return raised.value.reason

    server.words[OGG] = " \n"
    assert await reason() == "has no words that could be understood"
    assert await reason(b"%PDF-1.7") == "is no sound that can be read"
    server.status = 429
    assert await reason() == "couldn't be understood: the endpoint answered 429"
    server.status, server.is_silent = 200, True
    quick = SpeechSection(url=server.url, key_file="speech.key", timeout_s=0.05)
    assert await reason(section=quick) == "couldn't be understood: no answer within 0.05 s"
    wrong = section_of(server, tmp_path, key="sk-wrong")
    assert await reason(section=wrong) == "couldn't be understood: the endpoint answered 401"
    (tmp_path / "speech.key").unlink()
    assert await reason() == "couldn't be understood: the endpoint's key can't be read"
    away = SpeechSection(url=f"http://127.0.0.1:{free_port()}/v1")
    assert await reason(section=away) == "couldn't be understood: nothing listens there"


@up_to(300)
@given(st.binary(max_size=20))
def test_a_sound_is_named_so_that_endpoints_know_it(data: bytes) -> None:
    assert ending_of(data) in {"", "aac", *ENDINGS}


def test_doctor_says_what_cannot_be_asked(tmp_path: Path) -> None:
    def found(section: SpeechSection) -> tuple[str, str] | None:
        check = speech(Settings(config=Config(speech=section), home=tmp_path))
        return None if check is None else (check.state, check.found)

    url = "http://127.0.0.1:8080/v1"
    assert found(SpeechSection()) is None
    assert found(SpeechSection(url=url)) == ("ok", f"whisper-1 at {url} (not asked)")
    assert found(SpeechSection(url="127.0.0.1/v1"))[0] == "fail"  # type: ignore[index]
    state, text = found(SpeechSection(url=url, key_file="none.key")) or ("", "")
    assert state == "fail"
    assert text.startswith("speech.key_file: ")
    with pytest.raises(ConfigError, match=r"speech\.url"):
        Transcriber(SpeechSection(url="ftp://127.0.0.1/v1"), tmp_path)
