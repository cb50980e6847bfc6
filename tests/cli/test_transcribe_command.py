"""`heedful transcribe`: audio files in, text and subtitles out."""

import csv
import json
from os import fsdecode
from pathlib import Path

import numpy as np
import pytest
from invocation import invoke
from typer.testing import CliRunner

from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.cli import app
from heedful.cli.files import ReadFiles
from heedful.cli.transcribe import Source
from heedful.errors import InputError, Interrupted
from heedful.predictors.speech import TimestampedWindows
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.transcript import srt, tsv, vtt
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


def lines_of(found) -> str:
    """The output for all files: a line for each, the file, a tab and the text."""
    return "".join(f"{name}\t{transcript.text}\n" for name, transcript in zip(FILES, found, strict=True))


def test_each_file_is_a_line(plain):
    expected = plain.transcribe(FILES)
    assert transcribe(*FILES) == lines_of(expected)
    assert len({found.text for found in expected}) == 3
    assert transcribe("one.wav", "--beam", 1) == f"one.wav\t{plain.transcribe('one.wav', beam=1).text}\n"


def test_transcripts_are_a_table_by_the_outputs_name_and_names_do_not_break_lines(plain):
    name = "a\tb\nc.wav"
    Path("one.wav").rename(name)
    text = plain.transcribe(name).text
    assert transcribe(name) == f"a\\tb\\nc.wav\t{text}\n"
    transcribe(name, "--output", "out.csv")
    with Path("out.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["file", "text"], [name, text]]
    transcribe(name, "--output", "out.jsonl")
    assert json.loads(Path("out.jsonl").read_text()) == {"file": name, "text": text}
    with pytest.raises(InputError, match=r"--output out\.csv: the file name asks for a table"):
        transcribe(name, "--format", "json", "--output", "out.csv")


def test_text_has_time_stamps_only_in_long_recordings(stamped):
    expected = stamped.transcribe(FILES, timestamps="long")
    assert transcribe(*FILES) == lines_of(expected)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_model_that_is_to_write_no_time_stamps_writes_none(form, here):
    never = {"transcribe": {"timestamps": "never"}}
    made = save(random_transcriber(stamped_tokenizer(here / "tokenizer"), **never), here / "model")
    said = [transcribe(name, "--format", form) for name in FILES]
    texts = [json.loads(line)["text"] if form == "json" else line[:-1].split("\t")[1] for line in said]
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


@pytest.mark.parametrize("form", ["srt", "vtt", "json"])
def test_the_name_of_the_output_decides_on_its_format(stamped, here, form):
    wanted = transcribe("long.wav", "--format", form)
    assert transcribe("long.wav", "--output", f"a.{form}") == ""
    assert (here / f"a.{form}").read_text() == wanted
    assert transcribe("long.wav", "--format", "text", "--output", f"b.{form}") == ""
    assert (here / f"b.{form}").read_text() == transcribe("long.wav")


@pytest.mark.parametrize(("form", "format_"), [("srt", srt), ("vtt", vtt), ("tsv", tsv)])
def test_subtitles_are_those_of_the_segments(stamped, here, form, format_):
    segments = stamped.transcribe("long.wav").segments
    assert segments
    assert transcribe("long.wav", "--format", form) == format_(segments)
    assert transcribe("long.wav", "--format", form, "--output", f"a.{form}") == ""
    assert (here / f"a.{form}").read_text() == format_(segments)


@pytest.mark.parametrize("form", ["srt", "vtt", "tsv"])
def test_what_is_of_one_recording_needs_a_folder_for_several(stamped, form):
    with pytest.raises(InputError, match=f"--format {form}: is for one audio file, but there are 3; give --out FOLDER"):
        transcribe(*FILES, "--format", form)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "ending"), [("text", "txt"), ("json", "json"), ("srt", "srt"), ("vtt", "vtt"), ("tsv", "tsv")]
)
def test_each_recording_has_a_file_in_a_folder(stamped, here, form, ending):
    want = {name: transcribe(name, "--format", form) for name in FILES}
    if form == "text":
        texts = [line.split("\t")[1] for line in transcribe(*FILES).splitlines(keepends=True)]
        want = dict(zip(FILES, texts, strict=True))
    assert transcribe(*FILES, "--format", form, "--out", "made/texts") == ""
    found = {path.name: path.read_text() for path in (here / "made" / "texts").iterdir()}
    want = {f"{Path(name).stem}.{ending}": text for name, text in want.items()}
    if form == "json":  # scores are those of another batch, up to rounding
        want, found = ({name: json.loads(text)["text"] for name, text in each.items()} for each in (want, found))
    assert found == want
    transcribe(*FILES, "--format", form, "--out", "made/texts")
    (here / "made" / "texts" / f"one.{ending}").write_text("corrected by hand")
    with pytest.raises(InputError, match=rf"one\.{ending}: already exists, but was not written by heedful or was"):
        transcribe(*FILES, "--format", form, "--out", "made/texts")
    transcribe(*FILES, "--format", form, "--out", "made/texts", "--force")


def test_recordings_of_one_stem_have_files_of_their_whole_names(plain, here):
    (here / "one.flac").write_bytes((here / "two.flac").read_bytes())
    transcribe("one.wav", "one.flac", "--format", "srt", "--out", "made")
    assert sorted(path.name for path in (here / "made").iterdir()) == ["one.flac.srt", "one.wav.srt"]
    (here / "below").mkdir()
    (here / "below" / "one.wav").write_bytes((here / "one.wav").read_bytes())
    with pytest.raises(InputError, match=r"two transcripts would be named one\.wav\.srt; rename a source"):
        transcribe("one.wav", "below", "--format", "srt", "--out", "other")


def test_output_and_out_exclude_each_other(plain):
    with pytest.raises(InputError, match="--output is one file for all transcripts, --out a folder"):
        transcribe("one.wav", "--output", "a", "--out", "b")


def test_a_folder_stands_for_the_recordings_below_it(plain, here):
    (here / "all" / "below").mkdir(parents=True)
    for name, place in zip(FILES, ("all/a.wav", "all/below/b.flac", "all/c.wav"), strict=True):
        Path(name).rename(place)
    (here / "all" / "notes.txt").write_text("no sound")
    lines = [json.loads(line) for line in transcribe("all", "--format", "json").splitlines()]
    assert [line["file"] for line in lines] == ["all/a.wav", "all/below/b.flac", "all/c.wav"]


@pytest.mark.parametrize("content", ["a recording", "names"])
def test_standard_input_is_a_recording_or_a_list_of_names(plain, here, content):
    given = (here / "long.wav").read_bytes() if content == "a recording" else b"long.wav\none.wav\n"
    result = CliRunner().invoke(app, ["transcribe", "-", "--model", "model"], input=given)
    want = transcribe("long.wav") if content == "a recording" else transcribe("long.wav", "one.wav")
    want = want.replace("long.wav", "standard input") if content == "a recording" else want
    assert (result.stdout, result.exception) == (want, None)


def test_the_language_is_heard_or_given(here):
    several = save(random_transcriber(stamped_tokenizer(here / "tokenizer"), **languages()), here / "model")
    heard = json.loads(transcribe("long.wav", "--format", "json"))
    assert heard["language"] == several.transcribe("long.wav").language
    for code in ("de", "yue"):
        assert json.loads(transcribe("long.wav", "--format", "json", "--language", code))["language"] == code
    with pytest.raises(InputError, match="language = fr: the model knows en, de, yue"):
        transcribe("one.wav", "--language", "fr")


def test_names_of_files_that_are_not_there_are_refused_before_the_work(stamped, here, reporters):
    (here / "empty").mkdir()
    with pytest.raises(InputError, match=r"^absent\.wav: no such file or folder; .*\n  empty: no file"):
        transcribe("one.wav", "absent.wav", "empty", "--output", "out.txt")
    assert not (here / "out.txt").exists()
    assert not reporters


@pytest.mark.parametrize("form", ["text", "json", "files"])
@pytest.mark.parametrize("skip", [False, True])
def test_bad_files_are_named_at_the_end_and_the_others_are_transcribed(stamped, here, form, skip):
    noise = np.random.default_rng(1).normal(0, 0.1, 9000)  # frames of FLAC have up to 4,096 samples
    soundfile.write("whole.flac", noise, RATE)
    (here / "cut.flac").write_bytes((here / "whole.flac").read_bytes()[:-200])
    (here / "text.wav").write_text("no sound")
    soundfile.write("opposite.wav", np.stack([noise, -noise], axis=1), RATE)
    options = ["--format", "srt", "--out", "made"] if form == "files" else ["--format", form]
    names = ["text.wav", "one.wav", "cut.flac", "long.wav", "opposite.wav"]
    result = CliRunner().invoke(app, ["transcribe", *names, "--model", "model", *options, *["--skip-bad"] * skip])
    said = result.stderr if skip else str(result.exception)
    assert "3 of 5 files could not be read:\n  text.wav: it is not audio, is damaged" in said
    assert "\n  cut.flac: it is " in said
    assert "\n  opposite.wav: its channels cancel each other" in said
    assert (result.exit_code == 0) == skip
    if form == "files":
        assert sorted(path.name for path in (here / "made").iterdir()) == ["long.srt", "one.srt"]
    else:
        assert result.stdout == transcribe("one.wav", "long.wav", "--format", form)


def test_truncated_files_and_single_channels_are_transcribed_if_that_is_asked_for(plain, here):
    noise = np.random.default_rng(1).normal(0, 0.1, 9000)  # frames of FLAC have up to 4,096 samples
    soundfile.write("whole.flac", noise, RATE)
    (here / "cut.flac").write_bytes((here / "whole.flac").read_bytes()[:-200])
    soundfile.write("opposite.wav", np.stack([noise[:RATE], -noise[:RATE]], axis=1), RATE)
    assert len(transcribe("cut.flac", "opposite.wav", "--truncated", "--channel", 1).splitlines()) == 2


@pytest.fixture
def second_window_is_interrupted(monkeypatch):
    take = TimestampedWindows.take
    taken = []

    def interrupting(windows, reading, said):
        if reading in taken:
            raise KeyboardInterrupt
        if reading.window_length < reading.audio.length:
            taken.append(reading)
        take(windows, reading, said)

    monkeypatch.setattr(TimestampedWindows, "take", interrupting)


def test_what_was_heard_before_an_interruption_is_in_a_file_of_its_own(stamped, here, second_window_is_interrupted):
    (here / "a.srt").write_text("of an earlier run")
    with pytest.raises(Interrupted) as caught:
        transcribe("long.wav", "--format", "srt", "--output", "a.srt", "--force")
    heard = str(caught.value).removeprefix(
        "interrupted; a.srt.part contains the transcripts so far, and a.srt is unchanged; long.wav was transcribed "
        "up to 00:00:00."
    )
    assert 0 < int(heard) < 980
    assert (here / "a.srt.part").read_text().startswith("1\n00:00:00,")
    assert (here / "a.srt").read_text() == "of an earlier run"


def test_what_was_heard_of_the_next_file_follows_the_files_that_are_done(stamped, second_window_is_interrupted):
    with pytest.raises(
        Interrupted, match=r"unchanged; the first file is done, long\.wav was transcribed up to 00:00:00\."
    ):
        transcribe("one.wav", "long.wav", "--format", "json", "--output", "a.jsonl")
    first, second = map(json.loads, Path("a.jsonl.part").read_text().splitlines())
    assert (first["file"], first["seconds"]) == ("one.wav", 0.24)
    assert second["file"] == "long.wav"
    assert 0 < second["seconds"] < 0.98


def test_what_was_heard_of_a_later_file_is_not_taken_for_the_first(stamped, monkeypatch):
    take, taken = TimestampedWindows.take, []

    def interrupted(windows, reading, said):
        take(windows, reading, said)
        taken.append(reading)

    def search(transcriber, batch):
        if taken:
            raise KeyboardInterrupt
        return found(transcriber, batch)

    found = Transcriber._search
    monkeypatch.setattr(TimestampedWindows, "take", interrupted)
    monkeypatch.setattr(Transcriber, "_search", search)
    with pytest.raises(
        Interrupted, match=r"one.wav was transcribed up to 00:00:00.000, long.wav was transcribed up to 00:00:0"
    ):
        transcribe("one.wav", "long.wav", "--output", "a.txt")
    first, second = Path("a.txt.part").read_text().splitlines()
    assert first == "one.wav\t"
    assert second.removeprefix("long.wav\t")


def test_a_name_that_is_no_utf_8_is_written_as_it_is(plain, here):
    name = fsdecode(b"caf\xe9.wav")
    (here / "one.wav").rename(name)
    line = invoke("transcribe", name, "--model", "model", "--format", "json").stdout
    assert json.loads(line)["file"] == name


def test_many_files_are_not_open_at_once(plain, here):
    sources = [Source(name, Path(name)) for name in [*FILES, "absent.wav"]]
    files = ReadFiles(sources, lambda source: source.opened(plain.settings))
    opened = list(files)
    assert files.read == sources[:3]
    assert files.bad[0].startswith("absent.wav: no such file; give ")
    assert [audio.seconds for audio in opened] == pytest.approx([0.24, 0.22, 0.98])
    assert all(audio._file is None for audio in opened)


def test_an_interruption_before_anything_was_heard_leaves_nothing(stamped, here, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TimestampedWindows, "take", interrupted)
    for options, end in [((), ""), (("--output", "a.srt"), "; nothing was written")]:
        with pytest.raises(Interrupted) as caught:
            transcribe("long.wav", "--format", "srt", *options)
        assert str(caught.value) == f"interrupted before anything was transcribed{end}"
    assert not list(here.glob("*.srt*"))


def test_a_file_that_is_read_is_not_overwritten(stamped):
    with pytest.raises(InputError, match=r"--output one\.wav is also the input and would be overwritten"):
        transcribe("one.wav", "--output", "one.wav")


def test_a_model_of_another_kind_is_refused(here):
    with pytest.raises(InputError, match=r"is a translation model; use it with `heedful translate`"):
        invoke("transcribe", "one.wav", "--model", "en-de")


def test_progress_counts_seconds_of_sound(plain, reporters):
    transcribe(*FILES)
    (progress,) = reporters
    assert progress.work == "transcribing"


def test_a_model_of_speech_says_how_it_is_used(stamped):
    with pytest.raises(InputError, match=r"is a speech recognition model; use it with `heedful transcribe`"):
        invoke("translate", "a", "--model", "model")


def test_words_have_times_in_json_if_they_are_asked_for(stamped):
    found = json.loads(transcribe("long.wav", "--format", "json", "--word-timestamps"))
    for segment in found["segments"]:
        assert "".join(word["word"] for word in segment["words"]) == segment["text"].replace(" ", "")
        assert all(word.keys() == {"start", "end", "word", "score"} for word in segment["words"])
    assert "words" not in json.loads(transcribe("long.wav", "--format", "json"))["segments"][0]
    with pytest.raises(InputError, match="--word-timestamps are written only in JSON; add --format json"):
        transcribe("long.wav", "--format", "srt", "--word-timestamps")


def test_a_recording_without_a_text_is_said(stamped, here):
    soundfile.write("silent.wav", np.zeros(3 * RATE), RATE)
    result = CliRunner().invoke(app, ["transcribe", "silent.wav", "--model", "model", "--format", "srt"])
    assert (result.stdout, result.exit_code) == ("\n", 0)
    assert "heedful: files in which no speech was detected: 1 of 1 (silent.wav)" in result.stderr


def test_a_translation_and_a_prompt_need_a_model_that_knows_them(plain):
    with pytest.raises(InputError, match='task = "translate": this model does not translate speech'):
        transcribe("one.wav", "--task", "translate")
    with pytest.raises(InputError, match="initial_prompt: the model does not read previous text; leave the prompt out"):
        transcribe("one.wav", "--initial-prompt", "abc")
