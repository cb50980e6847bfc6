"""Captioning and speech recognition: texts about images and audio files, learned, scored, resumed."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from foreign_folders import SPOKEN
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import make_recipe
from heedful.errors import InputError
from heedful.losses import reference_cross_entropy
from heedful.metrics.bootstrap import example_scores
from heedful.predictors.speech import SpeechState
from heedful.tasks import TASKS as ALL
from heedful.tasks.parts.sequence_to_sequence import texts_of
from heedful.tasks.specs import best_score_name, output_metrics
from heedful.text.pipeline import BOS
from heedful.text.tokenizer import EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.training.preflight import preflight
from heedful.training.warm_start import with_warm_start
from interrupted import train
from toy_captions import COUNTS, TASKS, TEXTS, recipe, write_table
from toy_speech import languages, random_transcriber, stamped_tokenizer

CPU = torch.device("cpu")
CAPTIONS, SPEECH = TASKS


def prepared(name, folder, **tables):
    settings = recipe(name, write_table(name, folder / "files"), **tables)
    return ALL[name].prepare(settings, folder / "data", lambda _: None)


@pytest.fixture(params=TASKS)
def task(request, tmp_path):
    return prepared(request.param, tmp_path)


def built(task):
    torch.manual_seed(0)
    return task.build(task.recipe, task.tokenizers).eval()


def test_a_batch_holds_inputs_and_their_texts_shifted_behind_bos(task):
    ids = np.array([3, 0, 4])
    batch = task.data.read(task.data.examples.train, ids, None, CPU)
    store = task.data.examples.train[0]
    for row, index in enumerate(ids):
        wanted = store.target(index).tolist()
        length = int(batch.target_padding_mask[row].sum())
        assert batch.target_out[row, :length].tolist() == wanted
        assert wanted[-1] == EOS
        assert task.tokenizers.target.decode(wanted[:-1]) in TEXTS.values()
        assert (batch.target_out[row, length:] == PAD).all()
        rows = task.data.modality.features(task.data.modality.read(store.content(index)))
        assert torch.equal(batch.source[row, : len(rows)], rows)
        assert int(batch.source_padding_mask[row].sum()) == len(rows)


@torch.no_grad()
def test_loss_is_that_of_each_example_alone(task):
    model, store = built(task), task.data.examples.train[0]
    together = task.loss(model, task.data.read([store], np.arange(5), None, CPU))[0]
    total = 0.0
    for index in range(5):
        rows = task.data.modality.features(task.data.modality.read(store.content(index)))[None]
        target = torch.from_numpy(store.target(index))[None]
        shifted = torch.cat([torch.full((1, 1), 2), target[:, :-1]], dim=1)
        mask = torch.ones(1, rows.size(1), dtype=torch.bool)
        hidden = model.hidden(rows, mask, shifted, torch.ones_like(target, dtype=torch.bool))[0]
        total += float(reference_cross_entropy(hidden, model.output.weight, target[0], 0.0).sum)
    assert together.count == sum(len(store.target(index)) for index in range(5))
    assert float(together.sum) == pytest.approx(total, rel=1e-4)


def test_only_training_is_augmented_and_each_epoch_otherwise(task):
    stores, ids = task.data.examples.train, np.arange(4)
    plain, first, again, second = (task.data.read(stores, ids, epoch, CPU).source for epoch in (None, 0, 0, 1))
    assert torch.equal(first, again)
    assert first.shape != second.shape or not torch.equal(first, second)
    assert first.shape != plain.shape or not torch.equal(first, plain)


@torch.no_grad()
def test_a_task_has_the_scores_that_it_names(task):
    scores = task.evaluate(built(task)).scores
    assert tuple(scores) != ()
    assert set(scores) == set(task.spec.metrics)
    assert best_score_name(task.spec, task.recipe) == task.spec.metrics[0]
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    outcomes = task.evaluate(built(task)).outcomes
    of_examples = {"captioning": {"exact_match", "bleu"}, "speech_recognition": {"wer", "cer", "exact_match"}}
    assert outcomes.scores.keys() == of_examples[task.recipe.task]


@torch.no_grad()
def test_without_decoding_the_loss_is_left(tmp_path):
    task = prepared(CAPTIONS, tmp_path, train={"validate_decoding": False})
    assert task.evaluate(built(task)).scores.keys() == {"loss", "perplexity"}
    assert best_score_name(task.spec, task.recipe) == "loss"


@pytest.mark.slow
@pytest.mark.parametrize("name", [SPEECH])  # that captions are learned, recipes/shapes-caption shows
def test_a_model_learns_to_write(name, tmp_path):
    plain = {"image": {"shift": 0}, "audio": {"speed": 0.0, "time_masks": 0}, "model": {"dropout": 0.0}}
    once = {"max_updates": 151, "validate_every": 151, "save_every": 151}
    settings = recipe(name, write_table(name, tmp_path), train=once, **plain)
    train(settings, tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    scores = loaded.test(settings.data, lambda _: None)
    assert scores["exact_match"] > 0.8
    if name == SPEECH:
        assert scores["wer"] < 0.2
        assert scores["cer"] < 0.2


def test_a_text_that_is_too_long_is_dropped_from_training_and_counted(tmp_path):
    told = []
    settings = recipe(CAPTIONS, write_table(CAPTIONS, tmp_path), data={"filters": {"max_tokens": 5}})
    settings = replace(settings, decode=replace(settings.decode, max_extra=7))
    task = ALL[CAPTIONS].prepare(settings, tmp_path / "data", told.append)
    kept = sum(len(text.split()) + 1 <= 5 for text in TEXTS.values() if "bright" in text) * COUNTS["train"]
    assert len(task.data.examples.train[0]) == kept < 3 * COUNTS["train"]
    assert len(task.data.examples.valid) == 3 * COUNTS["valid"]
    assert any("too many tokens" in sentence for sentence in told)


def test_a_validation_text_that_has_no_positions_is_named_before_training(tmp_path):
    model = {"positions": "learned", "max_positions": 31, "max_target_positions": 23}
    table = {"model": model, "data": {"filters": {"max_tokens": 11}}}
    settings = recipe(CAPTIONS, write_table(CAPTIONS, tmp_path), **table)
    lines = (tmp_path / "valid.jsonl").read_text().splitlines()

    def prepare(words):
        lines[2] = json.dumps(json.loads(lines[2]) | {"text": "bright " * words})
        (tmp_path / "valid.jsonl").write_text("\n".join(lines))
        ALL[CAPTIONS].prepare(settings, tmp_path / "data", lambda _: None)

    prepare(22)
    for _ in range(2):  # the second time the data is there already
        with pytest.raises(
            InputError, match=r"valid.jsonl, line 3: .*png: its text of 24 tokens is longer than the 23 "
        ):
            prepare(23)


def test_a_table_that_names_a_missing_file_is_refused_before_training(tmp_path):
    settings = recipe(CAPTIONS, write_table(CAPTIONS, tmp_path))
    (tmp_path / "files" / "train-01.png").unlink()
    with pytest.raises(InputError, match=r"train.jsonl, line 2: .*train-01.png: no such file"):
        preflight(settings)


def test_error_rates_of_a_resample_are_sums_of_errors_over_sums_of_lengths(tmp_path):
    task = prepared(SPEECH, tmp_path)
    texts = texts_of(["one", "two or four", "five"], ["one", "two three four", "six"], task.recipe, task.tokenizers)
    outcomes = example_scores(texts, output_metrics(task.spec, task.recipe))
    assert outcomes.measure(np.array([1, 1, 0])) == {"wer": 2 / 7, "cer": 8 / 31, "exact_match": 1 / 3}
    assert outcomes.scores == outcomes.whole


@pytest.fixture
def whisper(tmp_path):
    """The folder of a small Whisper of several languages, and its transcriber."""
    tokenizer = stamped_tokenizer(tmp_path / "tokenizer")
    transcriber = random_transcriber(tokenizer, transcribe={**languages()["transcribe"], "suppress": [7]})
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    write_model(tmp_path / "whisper", transcriber.settings, tokenizers, weights(transcriber.model))
    return tmp_path / "whisper", transcriber


def test_a_whisper_learns_behind_the_prompt_with_which_it_transcribes(whisper, tmp_path, monkeypatch):
    start, transcriber = whisper
    files = write_table(SPEECH, tmp_path / "files")
    settings = recipe(SPEECH, files, train={"start": str(start)}, data={"target_language": "de"})
    settings = ALL[SPEECH].dataset.reader.resolve(with_warm_start(settings))
    spoken = settings.transcribe
    assert (spoken.language, spoken.languages) == ("de", tuple(SPOKEN))
    assert (spoken.suppress, spoken.timestamps) == ((7,), "never")
    task = ALL[SPEECH].prepare(settings, tmp_path / "data", lambda _: None)
    learned = task.data.examples.train[0].target(0).tolist()
    fed = []

    class Heard(SpeechState):
        def step(self, tokens):
            fed.append(int(tokens[0]))
            return super().step(tokens)

        def prompt(self):
            fed.append(int(self.begin[0]))
            return super().prompt()

    monkeypatch.setattr("heedful.predictors.transcriber.SpeechState", Heard)
    used = task.use(transcriber.model, settings, task.tokenizers)
    used.transcribe(np.full(100, 0.1, np.float32), beam=1)
    prompt = used.tokens.prompt("de")
    assert len(prompt) == 3
    assert fed[:4] == [BOS, *prompt] == [BOS, *learned[:3]]
    assert learned[-1] == EOS
    assert task.tokenizers.target.decode(learned[3:-1]) in TEXTS.values()


def test_a_whisper_of_several_languages_is_told_which_one_it_learns(whisper, tmp_path):
    files = write_table(SPEECH, tmp_path / "files")
    settings = recipe(SPEECH, files, train={"start": str(whisper[0])})
    with pytest.raises(InputError, match=r"transcribe\.language: the model distinguishes 3 languages; set it to"):
        preflight(settings)
    preflight(make_recipe(settings, ["transcribe.language=yue"]), tmp_path / "run")


def test_a_model_of_one_language_is_told_of_none(tmp_path):
    files = write_table(SPEECH, tmp_path / "files")
    train(recipe(SPEECH, files), tmp_path / "run")
    settings = recipe(SPEECH, files, train={"start": str(tmp_path / "run")}, transcribe={"language": "de"})
    with pytest.raises(InputError, match=r'transcribe\.language = "de": the model knows only one language; leave this'):
        preflight(settings)
