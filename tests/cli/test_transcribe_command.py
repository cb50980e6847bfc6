"""`heedful transcribe`: files of sound in, text and subtitles out."""

import json
from os import fsdecode
from pathlib import Path

import numpy as np
import pytest
from invocation import invoke

from heedful.checkpoint import write_model
from heedful.cli.transcribe import checked_files
from heedful.decode.speech_windows import StampedWindows
from heedful.decode.transcriber import Transcriber
from heedful.decode.transcript import srt, vtt
from heedful.errors import InputError, Interrupted
from heedful.models import weights
from heedful.text.tokenizer_pair import TokenizerPair
from toy_speech import RATE, languages, plain_tokenizer, random_transcriber, speech, stamped_tokenizer

soundfile = pytest.importorskip("soundfile")

FILES = ["one.wav", "two.flac", "long.wav"]


def save(transcriber: Transcriber, folder: Path) -> Transcriber:
    tokenizers = TokenizerPair(transcriber.tokenizer, transcriber.tokenizer)
    write_model(folder, transcriber.settings, tokenizers, weights(transcriber.model))
    return transcriber


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    clips = [[("a", 5), ("q", 7)], [("k", 11)], [("b", 19), ("m", 17), ("c", 13)]]
    for name, clip in zip(FILES, clips, strict=True):
        soundfile.write(name, speech(clip), RATE)
    return tmp_path


@pytest.fixture
def stamped(here: Path) -> Transcriber:
    return save(random_transcriber(stamped_tokenizer(here / "tokenizer")), here / "model")


@pytest.fixture
def plain(here: Path) -> Transcriber:
    return save(random_transcriber(plain_tokenizer()), here / "model")


def transcribe(*arguments: object) -> str:
    return invoke("transcribe", *arguments, "--model", "model").stdout


def test_each_file_is_a_line(plain):
    expected = plain.transcribe(FILES)
    assert transcribe(*FILES) == "".join(f"{found.text}\n" for found in expected)
    assert len({found.text for found in expected}) == 3
    assert transcribe("one.wav", "--beam", 1) == f"{plain.transcribe('one.wav', beam=1).text}\n"


def test_text_has_time_stamps_only_in_long_recordings(stamped):
    expected = stamped.transcribe(FILES, timestamps="long")
    assert transcribe(*FILES) == "".join(f"{found.text}\n" for found in expected)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_model_that_is_to_write_no_time_stamps_writes_none(form, here):
    never = {"transcribe": {"timestamps": "never"}}
    made = save(random_transcriber(stamped_tokenizer(here / "tokenizer"), **never), here / "model")
    said = [transcribe(name, "--format", form) for name in FILES]
    texts = [json.loads(line)["text"] if form == "json" else line.removesuffix("\n") for line in said]
    assert texts == [found.text for found in made.transcribe(FILES, timestamps="never")]


def test_json_tells_what_was_said_when(stamped):
    lines = [json.loads(line) for line in transcribe(*FILES, "--format", "json").splitlines()]
    expected = stamped.transcribe(FILES)
    assert [line["file"] for line in lines] == FILES
    for line, found in zip(lines, expected, strict=True):
        assert line["text"] == found.text
        assert line["language"] is None
        assert line["seconds"] == pytest.approx(found.seconds, abs=1e-3)
        assert [segment["text"] for segment in line["segments"]] == [segment.text for segment in found.segments]
        for ours, theirs in zip(line["segments"], found.segments, strict=True):
            assert (ours["start"], ours["end"]) == pytest.approx((theirs.start, theirs.end), abs=1e-3)
            assert ours["pieces"] == stamped.tokenizer.pieces(theirs.tokens)
            assert ours["token_scores"] == pytest.approx(theirs.token_scores, abs=1e-4)


@pytest.mark.parametrize(("form", "format_"), [("srt", srt), ("vtt", vtt)])
def test_subtitles_are_those_of_the_segments(stamped, here, form, format_):
    segments = stamped.transcribe("long.wav").segments
    assert segments
    assert transcribe("long.wav", "--format", form) == format_(segments)
    assert transcribe("long.wav", "--format", form, "--output", f"a.{form}") == ""
    assert (here / f"a.{form}").read_text() == format_(segments)


def test_subtitles_are_of_one_file(stamped):
    with pytest.raises(
        InputError, match="--format srt: subtitles are of one file, and there are 3; give one at a time"
    ):
        transcribe(*FILES, "--format", "srt")


def test_the_language_is_heard_or_given(here):
    several = save(random_transcriber(stamped_tokenizer(here / "tokenizer"), **languages()), here / "model")
    heard = json.loads(transcribe("long.wav", "--format", "json"))
    assert heard["language"] == several.transcribe("long.wav").language
    for code in ("de", "yue"):
        assert json.loads(transcribe("long.wav", "--format", "json", "--language", code))["language"] == code
    with pytest.raises(InputError, match="language = fr: the model knows en, de, yue"):
        transcribe("one.wav", "--language", "fr")


def test_all_files_are_looked_at_before_the_work(stamped, here):
    (here / "text.wav").write_text("no sound")
    with pytest.raises(InputError) as caught:
        transcribe("one.wav", "text.wav", "absent.wav", "--output", "out.txt")
    first, second = str(caught.value).splitlines()
    assert first.startswith("text.wav: it is no sound")
    assert second == "  absent.wav: there is no such file; name a file of sound"
    assert not (here / "out.txt").exists()


def test_a_file_that_is_cut_off_is_told_of_before_the_work(stamped, here, reporters):
    soundfile.write("whole.flac", np.random.default_rng(1).normal(0, 0.1, 3 * RATE), RATE)
    (here / "cut.flac").write_bytes((here / "whole.flac").read_bytes()[:-200])
    with pytest.raises(InputError, match=r"cut\.flac: it is (cut off|no sound, damaged)"):
        transcribe("one.wav", "cut.flac")
    assert not reporters


def test_a_folder_is_told_of(stamped, here):
    (here / "folder").mkdir()
    with pytest.raises(InputError, match="folder: is a folder; name the files of sound in it"):
        transcribe("folder")


@pytest.fixture
def second_window_is_interrupted(monkeypatch):
    take = StampedWindows.take
    taken = []

    def interrupting(windows, reading, said):
        if reading in taken:
            raise KeyboardInterrupt
        if reading.left < reading.recording.length:
            taken.append(reading)
        take(windows, reading, said)

    monkeypatch.setattr(StampedWindows, "take", interrupting)


def test_what_was_heard_before_an_interruption_is_in_a_file_of_its_own(stamped, here, second_window_is_interrupted):
    (here / "a.srt").write_text("of an earlier run")
    with pytest.raises(Interrupted) as caught:
        transcribe("long.wav", "--format", "srt", "--output", "a.srt", "--force")
    heard = str(caught.value).removeprefix(
        "interrupted; a.srt.part has what was heard, and a.srt is as it was; long.wav was heard until 00:00:00."
    )
    assert 0 < int(heard) < 980
    assert (here / "a.srt.part").read_text().startswith("1\n00:00:00,")
    assert (here / "a.srt").read_text() == "of an earlier run"


def test_what_was_heard_of_the_next_file_follows_the_files_that_are_done(stamped, second_window_is_interrupted):
    with pytest.raises(Interrupted, match=r"as it was; the first file is done, long\.wav was heard until 00:00:00\."):
        transcribe("one.wav", "long.wav", "--format", "json", "--output", "a.jsonl")
    first, second = map(json.loads, Path("a.jsonl.part").read_text().splitlines())
    assert (first["file"], first["seconds"]) == ("one.wav", 0.24)
    assert second["file"] == "long.wav"
    assert 0 < second["seconds"] < 0.98


def test_what_was_heard_of_a_later_file_is_not_taken_for_the_first(stamped, monkeypatch):
    take, taken = StampedWindows.take, []

    def interrupted(windows, reading, said):
        take(windows, reading, said)
        taken.append(reading)

    def search(transcriber, batch):
        if taken:
            raise KeyboardInterrupt
        return found(transcriber, batch)

    found = Transcriber._search
    monkeypatch.setattr(StampedWindows, "take", interrupted)
    monkeypatch.setattr(Transcriber, "_search", search)
    with pytest.raises(Interrupted, match=r"one.wav was heard until 00:00:00.000, long.wav was heard until 00:00:0"):
        transcribe("one.wav", "long.wav", "--output", "a.txt")
    first, second = Path("a.txt.part").read_text().splitlines()
    assert first == ""
    assert second


def test_a_name_that_is_no_utf_8_is_written_as_it_is(plain, here):
    name = fsdecode(b"caf\xe9.wav")
    (here / "one.wav").rename(name)
    line = invoke("transcribe", name, "--model", "model", "--format", "json").stdout
    assert json.loads(line)["file"] == name


def test_many_files_are_not_open_at_once(plain, here):
    recordings = checked_files([Path(name) for name in FILES])
    assert all(recording._sound is None for recording in recordings)


def test_an_interruption_before_anything_was_heard_leaves_nothing(stamped, here, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StampedWindows, "take", interrupted)
    for options, end in [((), ""), (("--output", "a.srt"), "; nothing is written")]:
        with pytest.raises(Interrupted) as caught:
            transcribe("long.wav", "--format", "srt", *options)
        assert str(caught.value) == f"interrupted before anything was heard{end}"
    assert not list(here.glob("*.srt*"))


def test_a_file_that_is_read_is_not_overwritten(stamped):
    with pytest.raises(InputError, match=r"--output one\.wav: is read as one\.wav and would be overwritten"):
        transcribe("one.wav", "--output", "one.wav")


def test_a_model_of_another_kind_is_refused(here):
    with pytest.raises(InputError, match=r'is a model for the task "translation"; use it with `heedful translate`'):
        invoke("transcribe", "one.wav", "--model", "en-de")


def test_progress_counts_seconds_of_sound(plain, reporters):
    transcribe(*FILES)
    (progress,) = reporters
    assert progress.work == "transcribing"


def test_a_model_of_speech_says_how_it_is_used(stamped):
    with pytest.raises(InputError, match=r'for the task "speech_recognition"; use it with `heedful transcribe`'):
        invoke("translate", "a", "--model", "model")
