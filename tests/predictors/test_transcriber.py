"""Recordings of any length become text: window by window, alike in every batch, with and without time stamps."""

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.predictors.speech import SpeechRules, SpeechState
from heedful.predictors.transcriber import Transcriber, padded_frames
from heedful.search import beam as beam_module
from heedful.search.beam import search
from heedful.text.pipeline import BOS, EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from toy_speech import (
    LETTERS,
    RATE,
    STEP,
    Parrot,
    languages,
    plain_tokenizer,
    random_transcriber,
    recipe,
    speech,
    stamped_tokenizer,
)

WINDOW = 25  # time stamps in half a second


@pytest.fixture(scope="module")
def stamped(tmp_path_factory):
    return stamped_tokenizer(tmp_path_factory.mktemp("stamped") / "tokenizer")


@pytest.fixture(scope="module")
def plain():
    return plain_tokenizer()


def parrot(tokenizer, **tables) -> Transcriber:
    return Transcriber(Parrot(tokenizer), tokenizer, recipe(**tables))


def some_runs(count, seed=1, longest=11):
    """Letters that differ from their neighbours, each for a while."""
    chance = random.Random(seed)
    letters = [LETTERS[(7 * i + chance.randrange(3)) % len(LETTERS)] for i in range(count)]
    return [(letter, chance.randint(3, longest)) for letter in letters]


def noises(count):
    """Sounds of many lengths within one window."""
    chance = np.random.default_rng(count)
    return [chance.normal(0, 0.3, chance.integers(17, WINDOW * STEP)).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("text", ["a\nb", "a  b", "a\n\n b\tc"])
def test_white_space_inside_a_text_is_as_the_model_writes_it(text):
    tokenizer = train_tokenizer([text], replace(Recipe().tokenizer, kind="character", byte_fallback=False))
    transcriber = parrot(tokenizer)
    assert transcriber.spell(tokenizer.encode(text)) == text


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("count", [2, 13, 47])
def test_a_long_recording_has_each_segment_once_at_its_time(stamped, count, beam):
    runs = some_runs(count)
    found = parrot(stamped).transcribe(speech(runs), beam=beam)
    ends = list(itertools.accumulate(length for _, length in runs))
    begins = [0, *ends[:-1]]
    assert [segment.text for segment in found.segments] == [letter for letter, _ in runs]
    assert [segment.start for segment in found.segments] == pytest.approx([0.02 * begin for begin in begins])
    assert [segment.end for segment in found.segments] == pytest.approx([0.02 * end for end in ends])
    assert found.text == " ".join(letter for letter, _ in runs)
    assert found.seconds == pytest.approx(0.02 * ends[-1])
    assert all(len(s.tokens) == len(s.token_scores) == 1 for s in found.segments)


def test_a_clip_that_is_repeated_is_written_down_as_often(stamped):
    clip = some_runs(4)
    found = parrot(stamped).transcribe(speech(clip * 7))
    assert [segment.text for segment in found.segments] == [letter for letter, _ in clip] * 7


@pytest.mark.parametrize("share", [0.2, 0.4])
@pytest.mark.parametrize("count", [2, 13, 47])
def test_overlapping_windows_are_joined_where_they_say_the_same(plain, count, share):
    runs = some_runs(count, longest=5)
    found = parrot(plain, transcribe={"overlap": share}).transcribe(speech(runs))
    assert found.text.replace(" ", "") == "".join(letter for letter, _ in runs)
    times = [time for segment in found.segments for time in (segment.start, segment.end)]
    assert times == pytest.approx(sorted(times))
    assert times[0] == 0.0
    assert times[-1] == pytest.approx(found.seconds)


def test_a_recording_is_given_as_soon_as_it_and_those_before_are_done(stamped):
    told: list[int] = []
    clips = [speech(some_runs(count)) for count in (2, 47, 3)]
    found = parrot(stamped).transcribe_each(clips, done=told.append)
    assert found.so_far() == []
    assert len(next(found).segments) == 2
    assert len(told) == 1
    long, short = found.so_far()
    assert len(short.segments) == 3
    whole = parrot(stamped).transcribe(clips[1])
    assert long.segments == whole.segments[: len(long.segments)]
    assert long.segments[-1].end == pytest.approx(long.seconds)
    assert long.seconds < whole.seconds
    assert list(found) == [whole, short]
    assert found.so_far() == []


def test_a_model_with_time_stamps_writes_none_where_none_are_asked_for(stamped):
    runs = some_runs(3, longest=5)
    short, long = speech(runs), speech(some_runs(17))
    transcriber = parrot(stamped)
    assert len(transcriber.transcribe(short, timestamps="always").segments) == 3
    for wanted in ("never", "long"):
        [segment] = transcriber.transcribe(short, timestamps=wanted).segments
        assert segment.text == "".join(letter for letter, _ in runs)
    together = transcriber.transcribe([short, long], timestamps="long")
    assert [len(found.segments) for found in together] == [1, 17]


def test_recordings_are_read_side_by_side_and_come_out_in_order(stamped):
    clips = [some_runs(count, seed=count) for count in (5, 31, 2, 13, 1, 7)]
    transcriber = parrot(stamped, decode={"beam": 1, "batch_tokens": 1000})
    found = transcriber.transcribe([speech(clip) for clip in clips])
    assert [len(transcript.segments) for transcript in found] == [5, 31, 2, 13, 1, 7]
    assert max(transcriber.model.batches) == 6
    alone = [transcriber.transcribe(speech(clip)) for clip in clips]
    assert alone == found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tables", [{"decode": {"beam": 1}}, {"decode": {"beam": 3}}], ids=["greedy", "beam"])
@pytest.mark.parametrize("kind", ["stamped", "plain", "languages"])
def test_a_transcript_does_not_depend_on_the_others_of_its_batch(kind, tables, request):
    tokenizer = request.getfixturevalue("plain" if kind == "plain" else "stamped")
    more = languages() if kind == "languages" else {}
    transcriber = random_transcriber(tokenizer, decode=tables["decode"] | {"max_extra": 7}, **more)
    sounds = noises(13)
    together = transcriber.transcribe(sounds)
    assert len({found.text for found in together}) > 5
    for other in (transcriber.transcribe(sounds[::-1])[::-1], [transcriber.transcribe(sound) for sound in sounds]):
        for ours, theirs in zip(together, other, strict=True):
            assert ours.text == theirs.text
            assert ours.language == theirs.language
            assert [s.start for s in ours.segments] == [s.start for s in theirs.segments]


def test_the_output_is_what_a_search_through_all_texts_finds(plain):
    """Every text of at most three tokens, scored one by one."""
    transcriber = random_transcriber(plain, decode={"beam": 23, "max_extra": 0, "alpha": 0.0, "patience": 0.0})
    audio = transcriber.settings.audio
    sound = noises(1)[0][: 3 * STEP]
    frames, mask = padded_frames([sound], audio)
    vocabulary = [i for i in range(len(plain)) if i not in (0, 2)]
    texts = [[EOS], *([a, EOS] for a in vocabulary if a != EOS)]
    texts += [[a, b, c] for a, b in itertools.product(vocabulary, repeat=2) if EOS not in (a, b) for c in vocabulary]
    with torch.inference_mode():
        inputs = torch.tensor([[2, *[*text, 0, 0][:2]] for text in texts])
        outputs = torch.cat(
            [
                transcriber.model(frames.expand(len(x), -1, -1), mask.expand(len(x), -1), x, torch.ones_like(x) > 0)
                for x in inputs.split(997)
            ]
        ).log_softmax(-1)
    scores = [
        sum(row[i, token].item() for i, token in enumerate(text)) for row, text in zip(outputs, texts, strict=True)
    ]
    best = texts[max(range(len(texts)), key=scores.__getitem__)]
    expected = plain.decode([token for token in best if token != EOS])
    found = transcriber.transcribe(sound)
    assert found.text == " ".join(expected.split())


def test_greedy_search_is_beam_search_with_one_hypothesis(stamped):
    transcriber = random_transcriber(stamped)
    config = replace(transcriber.settings.decode, beam=1)
    for sound in noises(5):
        frames, mask = padded_frames([sound], transcriber.settings.audio)
        found = []
        for strategy in (search, beam_module.beam_search):
            rules = SpeechRules.of(
                transcriber.tokens, transcriber.settings.transcribe, transcriber.tokens.times, len(stamped)
            )
            with torch.inference_mode():
                [[best]] = strategy(SpeechState(transcriber.model.start(frames, mask), rules), [17], config)
            found.append(best)
        assert found[0].tokens == found[1].tokens
        assert found[0].score == pytest.approx(found[1].score)


def test_a_silent_window_with_an_unlikely_text_is_left_out(stamped):
    transcriber = random_transcriber(stamped)
    sound = noises(1)[0]
    assert transcriber.transcribe(sound).segments
    sure = Transcriber(transcriber.model, stamped, recipe(transcribe={"no_speech": 0.0}))
    assert sure.transcribe(sound).segments == []
    assert sure.transcribe(sound).text == ""
    long = np.concatenate([sound] * 5)
    assert sure.transcribe(long).segments == []
    assert sure.transcribe(long).seconds == pytest.approx(len(long) / RATE)


def test_what_was_done_is_told_in_whole_seconds(stamped):
    told = []
    sounds = [speech(some_runs(47)), speech(some_runs(31))]
    list(parrot(stamped).transcribe_each(sounds, done=told.append))
    assert sum(told) == sum(len(sound) // RATE for sound in sounds)
    assert len(told) > 3


def test_recordings_are_opened_only_as_they_are_needed(plain):
    read = []

    def endless():
        for number in itertools.count():
            read.append(number)
            yield speech(some_runs(2))

    next(parrot(plain).transcribe_each(endless(), window=3))
    assert len(read) == 3


def test_files_bytes_and_arrays_are_the_same_recording(plain, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    samples = speech(some_runs(5, longest=4))
    soundfile.write(tmp_path / "a.wav", samples, RATE, subtype="FLOAT")
    transcriber = parrot(plain)
    given = [samples, torch.from_numpy(samples), tmp_path / "a.wav", str(tmp_path / "a.wav")]
    given.append((tmp_path / "a.wav").read_bytes())
    assert len({transcriber(one).text for one in given}) == 1
    assert transcriber.predict(given) == [transcriber.transcribe(samples)] * 5


@pytest.mark.parametrize("times", ["never", "always"])
@pytest.mark.parametrize("task", ["transcribe", "translate"])
def test_the_task_is_a_token_of_the_prompt_after_that_of_the_language(task, times, stamped, monkeypatch):
    transcriber = random_transcriber(stamped, **languages())
    fed = []

    class Heard(SpeechState):
        def step(self, tokens):
            fed.append(int(tokens[0]))
            return super().step(tokens)

        def prompt(self):
            fed.append(int(self.begin[0]))
            return super().prompt()

    monkeypatch.setattr("heedful.predictors.transcriber.SpeechState", Heard)
    tokens = transcriber.tokens
    found = transcriber.transcribe(noises(1)[0], task=task, language="de", timestamps=times, beam=1)
    prompt = [BOS, tokens.languages["de"], tokens.translate if task == "translate" else tokens.transcribe]
    prompt += [tokens.without_times] if times == "never" else []
    assert fed[: len(prompt)] == prompt
    assert None not in prompt
    assert found.language == "de"


def test_options_are_checked(stamped, plain):
    several = random_transcriber(stamped, **languages())
    assert several.transcribe(noises(1)[0], language="de").language == "de"
    with pytest.raises(InputError, match=r"language = fr: the model knows en, de, yue; leave the language out"):
        several.transcribe(noises(1)[0], language="fr")
    english = random_transcriber(stamped, data={"target_language": "en"})
    assert english.transcribe(noises(1)[0]).language == "en"
    with pytest.raises(InputError, match="language = de: the model knows only en"):
        english.transcribe(noises(1)[0], language="de")
    with pytest.raises(InputError, match="knows only one language, which its recipe does not name"):
        random_transcriber(plain).transcribe(noises(1)[0], language="de")
    unknown: Any = {"bean": 3}
    with pytest.raises(InputError, match='unknown option bean; did you mean "beam"'):
        english.with_options(**unknown)
    with pytest.raises(InputError, match="n_best = 3: an audio file has one transcript"):
        english.transcribe(noises(1)[0], beam=3, n_best=3)
    wrong: Any = {"timestamps": True}
    with pytest.raises(InputError, match=r'timestamps must be "always", "long" or "never"'):
        english.with_options(**wrong)


@pytest.mark.parametrize(
    ("transcribe", "words"),
    [({"suppress": [7, 10_007]}, "no token 10007"), ({"languages": ["en", "xx"]}, "no token for the language xx")],
)
def test_settings_that_the_vocabulary_lacks_are_refused(stamped, transcribe, words):
    with pytest.raises(InputError, match=words):
        parrot(stamped, transcribe=transcribe)


def test_a_model_folder_is_used_with_the_transcriber(stamped, tmp_path):
    transcriber = random_transcriber(stamped, transcribe={"suppress": [5, 11], "no_speech": 0.9})
    tokenizers = TokenizerPair(stamped, stamped)
    write_model(tmp_path / "model", transcriber.settings, tokenizers, weights(transcriber.model))
    again = load_model(tmp_path / "model").use_as(Transcriber)
    assert again.settings == transcriber.settings
    sound = noises(1)[0]
    assert again.transcribe(sound) == transcriber.transcribe(sound)
    assert again.with_options(beam=1).recipe.decode.beam == 1
