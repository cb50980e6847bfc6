"""The classifier of images, audio and videos: every way to give an input, one answer each, whatever is beside it."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image, ImageSequence

import heedful
from heedful.errors import InputError
from heedful.predictors import media_reader
from heedful.predictors.media_classifier import MediaClassifier
from toy_media import PITCHES, RATE, SIDES, TASKS, drawn, tone, write_files, write_untrained

PICTURES, SOUNDS, _ = TASKS
NOUN = "(image|audio|audio file|video)"


@pytest.fixture(scope="module", params=TASKS)
def files(request, tmp_path_factory) -> list[Path]:
    folder = write_files(request.param, tmp_path_factory.mktemp(request.param))
    write_untrained(request.param, folder / "model", folder)
    return sorted((folder / "train").rglob("*.*"))


@pytest.fixture
def classifier(files) -> MediaClassifier:
    found = heedful.load(files[0].parents[2] / "model")
    assert isinstance(found, MediaClassifier)
    return found


def decoded(file: Path) -> np.ndarray:
    if file.suffix == ".png":
        return np.asarray(Image.open(file))
    if file.suffix == ".gif":
        with Image.open(file) as video:
            return np.stack([np.asarray(frame.convert("L")) for frame in ImageSequence.Iterator(video)])
    return soundfile.read(file, dtype="float32")[0]


def test_a_file_its_name_its_bytes_and_its_contents_have_the_same_answer(classifier, files):
    wanted = classifier.predict(files[5])
    assert wanted.label in classifier.labels
    assert wanted.label == max(wanted.probabilities, key=wanted.probabilities.__getitem__)
    assert sum(wanted.probabilities.values()) == pytest.approx(1)
    assert list(wanted.probabilities) == list(classifier.labels)
    image = [Image.open(files[5])] if files[5].suffix == ".png" else []
    opened = BytesIO(files[5].read_bytes())
    for given in (
        str(files[5]),
        files[5].read_bytes(),
        decoded(files[5]),
        torch.tensor(decoded(files[5])),
        opened,
        *image,
    ):
        assert classifier.predict(given) == wanted
        if given is not opened:  # it is at its end now
            assert classifier(given) == wanted


def test_several_inputs_of_any_kind_have_an_answer_each_in_their_order(classifier, files):
    wanted = [classifier.predict(file) for file in files[:5]]
    assert len({tuple(answer.probabilities.values()) for answer in map(classifier.predict, files)}) == len(files)
    mixed = [files[0], str(files[1]), files[2].read_bytes(), decoded(files[3]), files[4]]
    for given in (files[:5], tuple(files[:5]), iter(files[:5]), mixed):
        found = classifier.predict(given)
        assert [answer.label for answer in found] == [answer.label for answer in wanted]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(list(one.probabilities.values()), list(other.probabilities.values()), atol=1e-5)
    assert classifier.predict([]) == []


def test_any_number_of_files_is_read_lazily(classifier, files, monkeypatch):
    monkeypatch.setattr(classifier.reader.modality, "window", 3)
    asked = []

    def endless():
        for number in range(10**9):
            asked.append(number)
            yield files[number % len(files)]

    answers = classifier.predict_files(endless())
    found = [next(answers) for _ in range(7)]
    assert len(asked) == 9
    assert [answer.label for answer in found] == [classifier.predict(file).label for file in files[:7]]


def test_small_batches_change_no_answer(classifier, files, monkeypatch):
    wanted = classifier.predict(files)
    monkeypatch.setattr(media_reader, "BATCH_TOKENS", 31)
    monkeypatch.setattr(classifier.reader.modality, "window", 7)
    for one, other in zip(classifier.predict(files), wanted, strict=True):
        np.testing.assert_allclose(list(one.probabilities.values()), list(other.probabilities.values()), atol=1e-5)


def test_a_model_stays_in_the_mode_that_it_was_in(classifier, files):
    classifier.model.train()
    assert classifier.predict(files[0]) == classifier.predict(files[0])
    assert classifier.model.training
    assert not any(torch.is_inference(parameter) for parameter in classifier.model.parameters())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, rf"5 \(int\) is neither an? {NOUN} nor a list; give a file name, bytes, an open file"),
        (None, rf"None is neither an? {NOUN} nor a list"),
        ({"a": "b"}, rf"is neither an? {NOUN} nor a list"),
        ([5], rf"{NOUN} 1: 5 \(int\) is not an? {NOUN}; give a file name, bytes, an open file"),
        ("nowhere.png", r"^nowhere.png: no such file"),
        (["nowhere.png"], rf"^{NOUN} 1: nowhere.png: no such file"),
        (b"text", rf"^(it is )?not (an |a )?{NOUN}"),
        (np.zeros((2, 3), np.int64), rf"an array of type int64 and shape \(2, 3\) is not (an |a )?{NOUN}"),
    ],
)
def test_what_is_no_input_is_refused(given, message, classifier):
    with pytest.raises(InputError, match=message):
        classifier.predict(given)


def test_the_number_of_a_bad_file_among_many_is_told(classifier, files, tmp_path):
    bad = tmp_path / f"bad{files[0].suffix}"
    bad.write_bytes(b"text")
    with pytest.raises(InputError, match=rf"{NOUN} 3: {bad}: (it is )?not (an |a )?{NOUN}"):
        classifier.predict([files[0], files[1], bad, files[2]])
    with pytest.raises(InputError, match="but several are expected here; put it in a list"):
        classifier.predict_files(files[0])


def test_pictures_of_any_size_and_sounds_of_any_length_are_read(tmp_path):
    write_untrained(PICTURES, tmp_path / "pictures", tmp_path)
    classifier: Any = heedful.load(tmp_path / "pictures")
    sizes = [np.ascontiguousarray(np.resize(drawn("left", 1), shape)) for shape in ((1, 1, 3), (97, 13, 3), (31, 31))]
    assert {answer.label for answer in classifier.predict(sizes)} <= set(SIDES)
    write_untrained(SOUNDS, tmp_path / "sounds", tmp_path)
    classifier = heedful.load(tmp_path / "sounds")
    clips = [tone("low", 1)[:count] for count in (1, 7, 150)] + [np.zeros(RATE, np.float32)]
    assert {answer.label for answer in classifier.predict(clips)} <= set(PITCHES)


def test_as_many_inputs_are_decoded_at_a_time_as_fit_into_memory(classifier, files):
    reader = classifier.reader
    one = reader.decoded(files[0])
    windows = list(reader.windows((one for _ in range(7)), 3 * reader.modality.tokens(one)))
    assert [len(window) for window in windows] == [3, 3, 1]


def test_a_sound_longer_than_the_training_clips_is_read_in_windows_whose_probabilities_are_averaged(tmp_path):
    write_files(SOUNDS, tmp_path)
    write_untrained(SOUNDS, tmp_path / "model", tmp_path)
    classifier: Any = heedful.load(tmp_path / "model")
    samples = np.concatenate([tone("low", 1), tone("high", 2)])
    samples = np.tile(samples, 9)[: round(2.5 * RATE)]  # clips of up to a second are read: three windows
    found = classifier.predict(samples)
    parts = [samples[begin : begin + RATE] for begin in (0, 750, 1500)]
    alone = classifier.predict(parts)
    assert found.windows == 3
    for label, share in found.probabilities.items():
        assert share == pytest.approx(sum(one.probabilities[label] for one in alone) / 3)
    soundfile.write(tmp_path / "long.wav", samples, RATE, subtype="FLOAT")
    again = classifier.predict([parts[0], tmp_path / "long.wav", parts[1]])
    assert again == [alone[0], found, alone[1]]
    assert [one.windows for one in again] == [1, 3, 1]


def test_a_sound_in_which_nothing_can_be_heard_is_marked(tmp_path):
    write_files(SOUNDS, tmp_path)
    write_untrained(SOUNDS, tmp_path / "model", tmp_path)
    classifier: Any = heedful.load(tmp_path / "model")
    click = np.zeros(3 * RATE, np.float32)
    click[-1] = 0.01
    given = [np.zeros(3 * RATE, np.float32), tone("low", 1), np.full(RATE // 2, 0.2, np.float32), click]
    assert [one.silent for one in classifier.predict(given)] == [True, False, True, False]
    assert classifier.predict(given[0]).label in classifier.labels
