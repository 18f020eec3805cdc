"""What every transcriber promises, and what each adds of its own."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import numpy as np
import pytest

from commonplace.adapters.transcribe import TRANSCRIBERS, audio, make_transcriber, whisper
from commonplace.adapters.transcribe.service import AssemblyAITranscriber, GladiaTranscriber
from commonplace.adapters.transcribe.whisper import LocalTranscriber
from commonplace.core.ingest.transcription import finished_job
from commonplace.errors import ConfigurationError, IngestFailed, Invalid, TranscriptionFailed
from commonplace.model import Begun
from commonplace.ports import Transcriber
from commonplace.settings import Settings
from tests.recordings import SOUND, VIDEO, picture_only, record, speech, tone
from tests.speech_service import SECONDS, SENTENCES, SpeechService
from tests.stub_service import KEY, Mishap, running

pytestmark = pytest.mark.anyio

SAID = (
    "Knowledge grows when people share it. The library opens every morning at nine, "
    "and the garden behind the house is full of flowers."
)


@pytest.fixture(scope="session")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speech(tmp_path_factory.mktemp("speech") / "said.wav", SAID)


@pytest.fixture
def hum(tmp_path: Path) -> Path:
    return record(tmp_path / "hum.ogg", tone(0.2, 48_000))


@pytest.fixture
def service() -> Iterator[SpeechService]:
    with running(SpeechService()) as ready:
        yield ready


class Progress:
    def __init__(self) -> None:
        self.told: list[float] = []

    async def __call__(self, share: float) -> None:
        self.told.append(share)


def content(path: Path) -> bytes:
    return path.read_bytes()


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


# Recordings -----------------------------------------------------------------------------------------------------------


def heard(path: Path) -> audio.Samples:
    return np.concatenate([piece.samples for piece in audio.pieces(path)])


def pitch(samples: audio.Samples) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(samples)))) * audio.RATE / len(samples)


class TestRecordings:
    @pytest.mark.parametrize("ending", [*SOUND, *VIDEO])
    async def test_every_format_is_heard(self, ending: str, tmp_path: Path) -> None:
        path = record(tmp_path / f"tone.{ending}", tone(3, 48_000))
        samples = heard(path)
        assert samples.dtype == np.float32
        assert len(samples) / audio.RATE == pytest.approx(3, abs=0.1)
        assert pitch(samples) == pytest.approx(440, abs=2)
        assert audio.duration(path) == pytest.approx(3, abs=0.3)

    async def test_a_long_recording_comes_in_pieces_that_end_in_pauses(
        self, tmp_path: Path
    ) -> None:
        samples = tone(125, audio.RATE)
        for second in (50, 104):
            samples[second * audio.RATE : second * audio.RATE + audio.RATE // 2] = 0
        pieces = list(audio.pieces(record(tmp_path / "long.flac", samples, audio.RATE, "mono")))
        assert [piece.end for piece in pieces[:2]] == pytest.approx([50.25, 104.25], abs=0.25)
        assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
        assert max(len(piece.samples) for piece in pieces) <= 61 * audio.RATE
        np.testing.assert_allclose(
            np.concatenate([piece.samples for piece in pieces]), samples, atol=1e-3
        )

    async def test_a_change_of_rate_and_channels_within_a_file_is_followed(
        self, tmp_path: Path
    ) -> None:
        one = record(tmp_path / "one.mp3", tone(2, 44_100), 44_100)
        two = record(tmp_path / "two.mp3", tone(2, 24_000), 24_000, "mono")
        both = tmp_path / "both.mp3"
        both.write_bytes(one.read_bytes() + two.read_bytes())
        samples = heard(both)
        assert len(samples) / audio.RATE == pytest.approx(4, abs=0.2)
        assert pitch(samples[-audio.RATE :]) == pytest.approx(440, abs=2)

    async def test_what_is_left_of_a_cut_off_file_is_heard(self, tmp_path: Path) -> None:
        path = record(tmp_path / "half.mp3", tone(10, 48_000))
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert 4 < len(heard(path)) / audio.RATE < 6

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\0" * 5000,
            b"just some words, not a recording",
            b"ID3\x04" + b"\xff" * 200,
            b"OggS" + b"\0" * 500,
            b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:9,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
            b"ffconcat version 1.0\nfile /etc/hostname\n",
        ],
    )
    async def test_what_is_no_recording_says_so(self, data: bytes, tmp_path: Path) -> None:
        path = tmp_path / "broken.mp3"
        path.write_bytes(data)
        with pytest.raises(IngestFailed, match="recording"):
            heard(path)

    async def test_a_silent_film_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(IngestFailed, match="no audio track"):
            audio.duration(picture_only(tmp_path / "film.mp4"))

    async def test_a_recording_without_a_sample_says_so(self, tmp_path: Path) -> None:
        path = record(tmp_path / "nothing.wav", tone(0, 48_000))
        with pytest.raises(IngestFailed, match="recording"):
            heard(path)


# Every transcriber ----------------------------------------------------------------------------------------------------


class FakeWhisper:
    """Takes whatever is not silent for one sentence. The real model takes its time;
    it is in tests/interfaces/test_uploads.py."""

    model = SimpleNamespace(is_multilingual=False)

    def __init__(self, **heard: Any) -> None:
        """`heard`: how sure it is, and what it hears."""
        self._heard = {"text": " Knowledge grows. ", "avg_logprob": -0.2, "temperature": 0} | heard
        self.pieces = 0

    def transcribe(self, samples: audio.Samples, **options: Any) -> tuple[list[Any], Any]:
        assert options["vad_filter"] and not options["condition_on_previous_text"]
        self.pieces += 1
        said = SimpleNamespace(start=0.5, end=1.5, **self._heard)
        about = SimpleNamespace(language="en", language_probability=1)
        return [said] if np.abs(samples).max() > 0.01 else [], about


@pytest.fixture
def fake_whisper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper, "_load", lambda folder, threads: FakeWhisper())


@pytest.fixture(params=["local", "assemblyai", "gladia"])
async def transcriber(
    request: pytest.FixtureRequest, service: SpeechService, fake_whisper: None
) -> AsyncIterator[Transcriber]:
    made = (
        make(request.param, service) if request.param != "local" else LocalTranscriber(Settings())
    )
    yield made
    await made.close()


def make(
    name: str,
    service: SpeechService,
    key: str = KEY,
    model: str = "",
    url: str = "",
    language: str = "",
    **patience: Any,
) -> Transcriber:
    settings = Settings(
        transcriber=name,
        transcriber_key=key,
        transcriber_model=model,
        transcriber_language=language,
        transcriber_url=url or service.url,
    )
    kind = {"assemblyai": AssemblyAITranscriber, "gladia": GladiaTranscriber}[name]
    return kind(settings, **{"pauses": (0.01, 0.01), "poll": 0.01, "timeout": 5.0} | patience)


class TestEveryTranscriber:
    async def test_writes_down_what_is_said_and_when(
        self, transcriber: Transcriber, spoken: Path
    ) -> None:
        progress = Progress()
        found = await transcriber.transcribe(spoken, progress)
        assert found.seconds > 5
        assert found.language == "en"
        assert all(one.text == one.text.strip() != "" for one in found.utterances)
        times = [time for one in found.utterances for time in (one.start, one.end)]
        assert times == sorted(times)
        assert 0 <= times[0] <= times[-1] <= found.seconds + 0.5
        assert progress.told == sorted(progress.told)
        assert progress.told[-1] == 1.0
        assert transcriber.name.split("/")[0] in TRANSCRIBERS

    async def test_what_is_no_recording_is_refused_for_good(
        self, transcriber: Transcriber, tmp_path: Path, service: SpeechService
    ) -> None:
        path = tmp_path / "page.mp3"
        path.write_bytes(b"<html>Not found</html>")
        with pytest.raises(IngestFailed, match="recording cannot be read"):
            await transcriber.transcribe(path, Progress())
        assert service.requests == []

    async def test_a_recording_in_which_nobody_speaks_says_so(
        self, transcriber: Transcriber, tmp_path: Path, service: SpeechService
    ) -> None:
        service.silent = True
        path = record(tmp_path / "quiet.wav", 0 * tone(2, 48_000))
        with pytest.raises(IngestFailed, match="No speech"):
            await transcriber.transcribe(path, Progress())

    async def test_it_can_be_stopped_and_used_again(
        self, transcriber: Transcriber, spoken: Path, service: SpeechService
    ) -> None:
        with anyio.CancelScope() as scope:

            async def stop(share: float) -> None:
                scope.cancel()

            await transcriber.transcribe(spoken, stop)
        assert scope.cancelled_caught
        assert (await transcriber.transcribe(spoken, Progress())).utterances

    async def test_closing_twice_is_harmless(self, transcriber: Transcriber) -> None:
        await transcriber.close()


class TestSettings:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"transcriber": "siri"}, "local, assemblyai, gladia"),
            ({"transcriber": "assemblyai"}, "COMMONPLACE_TRANSCRIBER_KEY"),
            ({"transcriber": "gladia"}, "COMMONPLACE_TRANSCRIBER_KEY"),
            (
                {
                    "transcriber": "gladia",
                    "transcriber_key": "k",
                    "transcriber_url": "localhost:80",
                },
                "COMMONPLACE_TRANSCRIBER_URL",
            ),
            ({"transcriber_model": "large-v3"}, "only the default model is downloaded"),
        ],
    )
    async def test_a_mistake_shows_when_the_transcriber_is_made(
        self, changes: dict[str, str], said: str, data_dir: Path
    ) -> None:
        with pytest.raises(ConfigurationError) as raised:
            make_transcriber(Settings(data_dir=data_dir, **changes))  # type: ignore[arg-type]
        assert said in raised.value.message

    async def test_a_model_of_ones_own_is_found_by_name_and_by_folder(self, data_dir: Path) -> None:
        folder = data_dir / "models" / "mine"
        folder.mkdir(parents=True)
        with pytest.raises(
            ConfigurationError, match=r"no model\.bin, config\.json, tokenizer\.json"
        ):
            make_transcriber(Settings(data_dir=data_dir, transcriber_model="mine"))
        for file in ("model.bin", "config.json", "tokenizer.json"):
            (folder / file).write_text("{}")
        for model in ("mine", str(folder)):
            assert (
                make_transcriber(Settings(data_dir=data_dir, transcriber_model=model)).name
                == f"local/{model}"
            )


# The local model ------------------------------------------------------------------------------------------------------


class TestLocal:
    async def test_two_at_once_are_both_served(self, spoken: Path, fake_whisper: None) -> None:
        transcriber = LocalTranscriber(Settings())
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(
                    transcriber.transcribe, spoken, Progress()
                )  # it raises when one fails
        await transcriber.close()

    async def test_a_model_that_nobody_needs_is_forgotten(
        self, spoken: Path, fake_whisper: None
    ) -> None:
        transcriber = LocalTranscriber(Settings(), idle=0)
        assert not transcriber.loaded
        await transcriber.transcribe(spoken, Progress())
        await anyio.sleep(0.001)  # the loop rings its bells in their order
        assert not transcriber.loaded
        assert (await transcriber.transcribe(spoken, Progress())).utterances
        await transcriber.close()
        assert not transcriber.loaded

    @pytest.mark.parametrize(
        "heard",
        [
            {"avg_logprob": -1.2},
            {"temperature": 0.8},
            {"text": " ren two ren one ren two" * 5},  # few words that English needs
        ],
    )
    async def test_other_languages_are_refused_by_a_model_that_knows_english_only(
        self, spoken: Path, monkeypatch: pytest.MonkeyPatch, heard: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(whisper, "_load", lambda folder, threads: FakeWhisper(**heard))
        with pytest.raises(IngestFailed, match="does not seem to be in English"):
            await LocalTranscriber(Settings()).transcribe(spoken, Progress())
        monkeypatch.setattr(FakeWhisper, "model", SimpleNamespace(is_multilingual=True))
        found = await LocalTranscriber(Settings()).transcribe(spoken, Progress())
        assert found.utterances and found.language == "en"

    async def test_another_attempt_goes_on_behind_the_last_piece(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        models: list[FakeWhisper] = []
        monkeypatch.setattr(whisper, "_load", lambda *_: models.append(FakeWhisper()) or models[-1])
        path = record(tmp_path / "long.wav", tone(200, 16_000), 16_000, "mono")
        whole = await LocalTranscriber(Settings()).transcribe(path, Progress())
        states: list[Any] = []
        transcriber = LocalTranscriber(Settings(), save_seconds=0)
        with anyio.CancelScope() as scope:

            async def remember(state: Any) -> None:
                states.append(json.loads(json.dumps(state)))
                if len(states) == 2:
                    scope.cancel()

            await transcriber.transcribe(path, Progress(), Begun(None, remember, anyio.sleep))
        again = await LocalTranscriber(Settings()).transcribe(
            path, Progress(), Begun(states[-1], remember, anyio.sleep)
        )
        assert (again.utterances, again.seconds) == (whole.utterances, whole.seconds)
        assert models[0].pieces == models[1].pieces + models[2].pieces == 5

    async def test_a_broken_model_is_named(self, hum: Path, data_dir: Path) -> None:
        folder = data_dir / "models" / "broken"
        folder.mkdir(parents=True)
        for file in ("model.bin", "config.json", "tokenizer.json"):
            (folder / file).write_text("{}")
        transcriber = LocalTranscriber(Settings(data_dir=data_dir, transcriber_model="broken"))
        with pytest.raises(ConfigurationError, match="broken cannot be loaded"):
            await transcriber.transcribe(hum, Progress())
        await transcriber.close()


# Services over HTTP ---------------------------------------------------------------------------------------------------

MakeApi = Callable[..., Transcriber]
CREATE = {"assemblyai": "/v2/transcript", "gladia": "/v2/pre-recorded"}


@pytest.fixture(params=list(CREATE))
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make_api(api: str, service: SpeechService) -> AsyncIterator[MakeApi]:
    made: list[Transcriber] = []

    def another(**changes: Any) -> Transcriber:
        made.append(make(api, service, **changes))
        return made[-1]

    yield another
    for transcriber in made:
        await transcriber.close()


async def failure(
    transcriber: Transcriber, recording: Path, kind: type[Exception] = TranscriptionFailed
) -> str:
    with pytest.raises(kind) as raised:
        await transcriber.transcribe(recording, Progress())
    return str(raised.value)


class TestServices:
    async def test_voices_are_told_apart_if_there_are_several(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        assert {
            one.speaker for one in (await make_api().transcribe(hum, Progress())).utterances
        } == {None}
        service.dialogue = True
        found = await make_api().transcribe(hum, Progress())
        names = [one.speaker for one in found.utterances]
        assert len({*names}) == 2 and all(name and name.startswith("Speaker ") for name in names)

    async def test_the_language_of_the_setting_is_told(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        await make_api(language="de").transcribe(hum, Progress())
        [job] = service.jobs
        assert job.get("language_code") == "de" or job["language_config"] == {"languages": ["de"]}

    async def test_the_whole_recording_is_sent_and_sentences_come_back(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        found = await make_api().transcribe(hum, Progress())
        assert service.uploads == [content(hum)]
        assert [(one.start, one.end, one.text) for one in found.utterances] == SENTENCES
        assert (found.seconds, found.language) == (SECONDS, "en")

    async def test_the_model_is_the_services_own_unless_one_is_set(
        self, api: str, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        for model in ("", "best-2"):
            await make_api(model=model).transcribe(hum, Progress())
        default, chosen = service.jobs
        assert not {"model", "speech_models"} & set(default)
        assert chosen.get("model") == "best-2" or chosen.get("speech_models") == ["best-2"]

    async def test_a_refused_key_is_not_tried_again_and_not_shown(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        message = await failure(make_api(key="wrong-key"), hum)
        assert "rejected the key (HTTP 401); check COMMONPLACE_TRANSCRIBER_KEY" in message
        assert "wrong-key" not in message
        assert len(service.requests) == 1

    async def test_an_echoed_key_is_masked(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        service.mishaps = {"/v2/upload": [Mishap(400, body=f"bad header {KEY}")]}
        assert "bad header ***" in await failure(make_api(), hum)

    async def test_a_passing_trouble_is_sat_out(
        self, api: str, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        service.mishaps = {
            "/v2/upload": [Mishap(500)],
            CREATE[api]: [Mishap(429)],
            "job-0": [Mishap(503), Mishap(502)],
        }
        assert (await make_api().transcribe(hum, Progress())).utterances
        assert service.uploads == [content(hum)]
        assert len(service.jobs) == 1

    @pytest.mark.parametrize("mishap", [Mishap(500), Mishap(silent=True)])
    async def test_a_job_that_may_have_begun_is_not_ordered_twice(
        self, api: str, make_api: MakeApi, service: SpeechService, hum: Path, mishap: Mishap
    ) -> None:
        service.mishaps = {CREATE[api]: [mishap]}
        await failure(make_api(timeout=0.2), hum)
        assert len(service.asked("POST", CREATE[api])) == 1

    async def test_a_lasting_trouble_is_worth_another_try_later(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        service.mishaps = {"/v2/upload": [Mishap(502)] * 9}
        assert "out of order (HTTP 502)" in await failure(make_api(), hum)

    async def test_a_service_that_is_not_there(self, make_api: MakeApi, hum: Path) -> None:
        assert "cannot be reached" in await failure(make_api(url="http://127.0.0.1:9"), hum)

    async def test_silence_is_a_failure(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        service.mishaps = {"job-0": [Mishap(silent=True)] * 3}
        assert "did not answer in time" in await failure(make_api(timeout=0.05), hum)

    async def test_nobody_waits_for_ever(
        self, make_api: MakeApi, service: SpeechService, hum: Path
    ) -> None:
        service.busy = ["processing"] * 10_000
        assert "has not finished in time" in await failure(make_api(least_wait=0.1), hum)

    @pytest.mark.parametrize("status", [413, 415, 422])
    async def test_a_recording_they_refuse_is_at_fault(
        self, make_api: MakeApi, service: SpeechService, hum: Path, status: int
    ) -> None:
        service.mishaps = {"/v2/upload": [Mishap(status, body="too much")]}
        assert "too much" in await failure(make_api(), hum, IngestFailed)

    @pytest.mark.parametrize(
        "answer",
        [
            "<html>",
            "[]",
            "{}",
            '{"status": "dancing"}',
            '{"status": "completed"}',
            '{"status": "done", "result": null}',
            '{"status": "completed", "words": [{"text": 5}, 7]}',
            '{"status": "done", "result": {"transcription": {"utterances": [1]}}}',
        ],
    )
    async def test_an_answer_that_makes_no_sense(
        self, make_api: MakeApi, service: SpeechService, hum: Path, answer: str
    ) -> None:
        service.mishaps = {"job-0": [Mishap(body=answer)]}
        message = await failure(make_api(), hum)
        assert "unexpected answer" in message or "not JSON" in message

    @pytest.mark.parametrize("body", ['{"upload_url": 7, "audio_url": null}', "{}"])
    async def test_an_upload_without_an_address(
        self, make_api: MakeApi, service: SpeechService, hum: Path, body: str
    ) -> None:
        service.mishaps = {"/v2/upload": [Mishap(body=body)]}
        assert "unexpected answer" in await failure(make_api(), hum)

    @pytest.mark.parametrize(
        ("api", "error", "kind"),
        [
            (
                "assemblyai",
                "File does not appear to contain audio. File type is text/html.",
                IngestFailed,
            ),
            (
                "assemblyai",
                "language_detection cannot be performed on files with no spoken audio.",
                IngestFailed,
            ),
            ("assemblyai", "Server error, developers have been alerted.", TranscriptionFailed),
            ("assemblyai", "Download error, unable to download the file", TranscriptionFailed),
            ("gladia", 400, IngestFailed),
            ("gladia", 422, IngestFailed),
            ("gladia", 500, TranscriptionFailed),
            ("gladia", 429, TranscriptionFailed),
        ],
        indirect=["api"],
    )
    async def test_whose_fault_it_was_decides_about_another_try(
        self,
        make_api: MakeApi,
        service: SpeechService,
        hum: Path,
        error: Any,
        kind: type[Exception],
    ) -> None:
        service.error = error
        assert str(error) in await failure(make_api(), hum, kind)


class TestWebhooks:
    @pytest.mark.parametrize(
        ("news", "job"),
        [
            ({"transcript_id": "5552-16d8", "status": "completed"}, "5552-16d8"),
            ({"transcript_id": "5552-16d8", "status": "error"}, "5552-16d8"),
            ({"event": "transcription.success", "payload": {"id": "4546-20b7"}}, "4546-20b7"),
            (
                {"id": "4546-20b7", "event": "transcription.error", "error": {"code": 500}},
                "4546-20b7",
            ),
            ({"event": "transcription.created", "payload": {"id": "4546-20b7"}}, None),
            ({"transcript_id": "5552-16d8", "status": "processing"}, None),
        ],
    )
    async def test_the_news_name_the_job(self, news: dict[str, Any], job: str | None) -> None:
        assert finished_job(json.dumps(news).encode()) == job

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"\xff\xfe",
            b"[]",
            b"null",
            b'"transcript_id"',
            b"{}",
            b'{"event": "transcription.success"}',
        ],
    )
    async def test_anything_else_is_refused(self, body: bytes) -> None:
        with pytest.raises(Invalid):
            finished_job(body)
