"""Models that read images, audio files or videos are looked into like models of text: the same taps, other labels."""

import base64
import json
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import heedful
from heedful.errors import InputError
from heedful.inspector.capture.recorder import Head
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import Trace, trace
from heedful.inspector.experiments.ablation import effect
from heedful.inspector.look import Question, look
from heedful.inspector.overview import facts, overview
from heedful.inspector.page import Page, with_file
from toy_readers import CAPTION, FILES, LABELS, PICTURE, SOUND, VIDEO, loaded

PATCHES = ["1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
PAGE = Page("<!doctype html><html><head><title>p</title></head><body></body></html>")


def seen_of(task, **question):
    return look(loaded(task).use(), Question(text="a file", file=FILES[task], **question))


@pytest.mark.parametrize("task", FILES)
def test_every_tensor_of_a_model_of_text_is_there_too(task):
    seen = seen_of(task)
    assert set(taps(seen.forward.model)) <= set(seen.trace)
    for name in ("src.in", "enc.0.self.attn", "enc.0.ffn.resid", "logits"):
        assert name in seen.trace
    assert max(seen.trace.checks.values()) < 1e-5
    weights = seen.trace["enc.0.self.attn"]
    assert weights.labels[1] == weights.labels[2] == seen.trace.lines["src"].read.labels
    np.testing.assert_allclose(weights.values.sum(-1), 1, rtol=1e-5)


def test_patches_are_named_by_row_and_column_behind_the_class_token():
    weights = seen_of("captioning").trace["dec.0.cross.attn"]
    assert weights.labels[2] == ["<class>", *PATCHES]
    assert weights.shape[2] == 7


def test_frames_are_named_by_the_time_at_which_they_begin():
    seen = seen_of("speech_recognition")
    labels = seen.trace["dec.0.cross.attn"].labels[2]
    assert labels[:3] == ["0.00 s", "0.04 s", "0.08 s"]
    assert len(labels) == seen.forward.media.positions == seen.trace["src.in"].shape[0]


@pytest.mark.parametrize("task", ["captioning", "speech_recognition"])
def test_the_answer_is_that_of_the_predictor_and_its_search_is_logged(task):
    subject: Any = loaded(task).use()
    seen = look(subject, Question(text="a file", file=FILES[task]))
    said = subject.predict(FILES[task])
    assert seen.answers[0].options[0].text == getattr(said, "text", said)
    assert [h.score for h in seen.log.replay()] == [option.score for option in seen.answers[0].options]
    assert seen.lens is not None


@pytest.mark.parametrize("task", LABELS)
def test_the_answer_of_a_classifier_is_its_classes_likeliest_first(task):
    subject: Any = loaded(task).use()
    found = subject.predict(FILES[task])
    [answer] = seen_of(task).answers
    assert {option.text: option.probability for option in answer.options} == pytest.approx(found.probabilities)
    assert answer.options[0].text == found.label


def test_a_caption_that_is_given_is_looked_at_instead():
    seen = seen_of("captioning", target=CAPTION)
    assert seen.log is None
    assert seen.answers[0].options[0].text == CAPTION
    assert seen.trace.lines["tgt"].written.words[:-1] == CAPTION.split()


def test_a_reference_is_followed_and_unknown_words_of_it_are_named():
    seen = seen_of("captioning", reference=CAPTION)
    assert seen.reference is not None
    assert seen_of("captioning", target="the elephant is bright").unknown == ["elephant"]


@pytest.mark.parametrize("task", FILES)
def test_a_file_is_told_without_its_content_and_the_page_gets_what_the_model_reads(task):
    seen = seen_of(task)
    told = json.loads(json.dumps(overview(seen), allow_nan=False))
    assert told["question"]["file"] is None
    assert told["media"]["kind"] == ("audio" if FILES[task] == SOUND else "image")


def test_the_page_holds_the_pixels_that_the_model_reads():
    model = loaded("captioning")
    seen = seen_of("captioning")
    told = overview(seen)
    media = told["media"]
    assert [media[key] for key in ("height", "width", "rows", "columns", "before")] == [14, 21, 2, 3, 1]
    shown = np.asarray(Image.open(BytesIO(base64.b64decode(media["png"]))))
    np.testing.assert_array_equal(shown, model.use().reader.decoded(PICTURE))
    html = PAGE.holding({"model": facts("m", model.recipe, model.model)} | told, seen.trace, ("dec.0.cross", 1))
    assert 'data-part="dec.0.cross 1"' in html


def test_a_video_is_shown_as_the_first_frames_of_its_tubelets_one_below_the_other():
    seen = seen_of("video_classification")
    media = overview(seen)["media"]
    assert [media[key] for key in ("height", "width", "rows", "columns", "before")] == [3 * 14, 21, 3 * 2, 3, 1]
    labels = seen.trace["enc.0.self.attn"].labels[2]
    assert labels == ["<class>", *(f"{row},{column}" for row in range(1, 7) for column in range(1, 4))]
    read = loaded("video_classification").use().reader.decoded(VIDEO)
    shown = np.asarray(Image.open(BytesIO(base64.b64decode(media["png"]))))
    np.testing.assert_array_equal(shown.reshape(3, 14, 21, 3), read[::2])


@pytest.mark.parametrize("task", FILES)
def test_heads_of_the_encoder_and_no_others_have_a_distance(task):
    heads = overview(seen_of(task))["heads"]
    assert [block for block, kinds in heads.items() if "distance" in kinds] == [b for b in heads if b[:3] == "enc"]


def test_places_are_those_of_the_labels():
    video = seen_of("video_classification").forward.media
    assert np.isnan(video.places[0]).all()
    rows_and_columns = [[row, column] for _ in range(3) for row in range(2) for column in range(3)]
    assert video.places[1:].tolist() == rows_and_columns
    sound = seen_of("speech_recognition").forward.media
    assert [float(label.split()[0]) for label in sound.labels] == pytest.approx(sound.places[:, 0].tolist(), abs=1e-4)


def test_the_spectrum_is_that_which_the_model_reads_to_a_256th():
    media = overview(seen_of("speech_recognition"))["media"]
    reader = loaded("speech_recognition").use().reader
    read = reader.modality.features(reader.decoded(SOUND)).numpy()
    shades = np.frombuffer(base64.b64decode(media["spectrum"]), np.uint8).reshape(media["frames"], media["mels"])
    scaled = (read - read.min()) / (read.max() - read.min())
    np.testing.assert_allclose(shades / 255, scaled, atol=0.5 / 255 + 1e-6)
    assert media["bands"] == sorted(media["bands"])
    assert media["bands"][-1] < 500


@pytest.mark.parametrize("task", FILES)
def test_heads_are_switched_off_as_in_a_model_of_text(task):
    subject = loaded(task).use()
    found = effect(subject, look(subject, Question(text="a file", file=FILES[task])), [Head("enc.0.self", 1)])
    assert found.answers
    assert bool(found.choices) == (task in LABELS)


@pytest.mark.parametrize("task", FILES)
def test_a_trace_is_read_again_from_its_file(task, tmp_path):
    kept = trace(loaded(task).use(), FILES[task])
    kept.save(tmp_path / "trace.safetensors")
    again = Trace.load(tmp_path / "trace.safetensors")
    assert again.lines == kept.lines
    assert np.array_equal(again["logits"].values, kept["logits"].values)


def test_python_takes_the_name_of_a_file_its_bytes_and_pixels(tmp_path):
    subject = loaded("captioning").use()
    (tmp_path / "a.png").write_bytes(PICTURE)
    named, paths = heedful.trace(subject, str(tmp_path / "a.png")), heedful.trace(subject, [tmp_path / "a.png"] * 2)
    pixels = heedful.trace(subject, subject.reader.decoded(PICTURE))
    for found in (*paths, pixels, heedful.trace(subject, PICTURE)):
        assert np.array_equal(found["logits"].values, named["logits"].values)
    question = with_file(subject, Question(text=str(tmp_path / "a.png")))
    assert (question.text, question.file) == ("a.png", PICTURE)


@pytest.mark.parametrize(
    ("task", "question", "words"),
    [
        ("captioning", Question(text="x.png", file=b"no picture"), "x.png: not an image"),
        ("captioning", Question(text="x.png", file=PICTURE[:90]), "x.png: the image is damaged or cut off"),
        ("captioning", Question(text="x.wav", file=SOUND), "x.wav: not an image"),
        ("audio_classification", Question(text="x.png", file=PICTURE), "x.png: it is not audio"),
        ("captioning", Question(text="x.png", file=PICTURE, target="the " * 30), "the output has 31 tokens"),
        ("image_classification", Question(text="x.png", file=PICTURE, target="left"), "leave the target out"),
        ("captioning", Question(text="/etc/hostname"), "reads images, not text; give a file"),
        ("audio_classification", Question(text="/etc/hostname"), "reads audio files, not text; give a file"),
    ],
)
def test_wrong_files_are_refused_and_a_text_is_never_a_path(task, question, words):
    with pytest.raises(InputError, match=words):
        look(loaded(task).use(), question)


def test_what_the_model_never_writes_is_no_reference_and_no_beginning():
    model = loaded("captioning")
    forbidden = model.tokenizers.target.encode("bright")[0]
    with pytest.MonkeyPatch.context() as patch:
        output = model.model.output.forward
        hidden = torch.full((len(model.tokenizers.target),), 0.0)
        hidden[forbidden] = -torch.inf
        patch.setattr(model.model.output, "forward", lambda x: output(x) + hidden)
        with pytest.raises(InputError, match=r"the reference contains '.*bright', which the model never writes there"):
            look(model.use(), Question(text="a", file=PICTURE, reference=CAPTION))
        with pytest.raises(InputError, match="the model never writes an output that begins with 'bright'"):
            look(model.use(), Question(text="a", file=PICTURE, prefix="bright"))


def test_what_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("heedful.inspector.look.MAX_ATTENTION_BYTES", 1000)
    with pytest.raises(InputError, match=r"positions need 0\.0 GB for the attention of all heads"):
        seen_of("audio_classification")


@pytest.mark.parametrize("kind", ["translator", "generator", "classifier"])
def test_a_model_of_text_takes_no_file(kind):
    import subjects

    with pytest.raises(InputError, match="reads text, not files"):
        look(getattr(subjects, kind)(), Question(text="x.png", file=PICTURE))
