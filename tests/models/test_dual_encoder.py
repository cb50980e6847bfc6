"""Dual encoder of pictures and texts: vectors of length 1 that depend on their own input alone, learned from pairs."""

import pytest
import torch

from heedful.checkpoint import load_model
from heedful.config.load import make_recipe
from heedful.models.input_layers import media_and_text
from heedful.tasks import TASKS
from heedful.train import loop
from interrupted import stop_after, train
from reversal import fingerprint
from toy_captions import TEXTS, write_table

CORPUS = {"source_field": "file", "target_field": "text"}


def recipe(folder, **train_settings):
    return make_recipe(
        {
            "task": "image_text_retrieval",
            "data": {
                "train": [{"source": "train.jsonl", **CORPUS}],
                "valid": {"source": "valid.jsonl", **CORPUS},
                "test": {"source": "valid.jsonl", **CORPUS},
                "max_length": 13,
            },
            "tokenizer": {"kind": "word", "vocab_size": 31, "byte_fallback": False},
            "image": {"size": [14, 21], "patch": 7, "shift": 1},
            "model": {
                "d_model": 26,
                "d_ff": 37,
                "heads": 2,
                "encoder_layers": 1,
                "dropout": 0.0,
                "projection": 11,
                "text_d_model": 22,
                "text_d_ff": 29,
                "text_heads": 2,
                "text_layers": 1,
            },
            "optimizer": {"name": "adamw", "lr": 0.003, "schedule": "constant", "warmup": 3},
            "train": {
                "max_updates": 9,
                "precision": "float32",
                "batch_tokens": 131,
                "validate_every": 4,
                "save_every": 3,
                "threads": 1,
                "device": "cpu",
                **train_settings,
            },
        },
        data_root=folder,
    )


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(3)
    return media_and_text(recipe(tmp_path), 31).eval()


@torch.no_grad()
def test_a_vector_has_length_1_and_depends_on_its_own_input_alone(model):
    pixels = torch.randn(3, 14, 21, 3)
    mask = torch.ones(3, 14, dtype=torch.bool)
    together = model.pictures(pixels, mask)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))
    for number in range(3):
        alone = model.pictures(pixels[number : number + 1], mask[:1])
        torch.testing.assert_close(alone[0], together[number], atol=1e-5, rtol=1e-5)
    tokens = torch.randint(5, 31, (2, 7))
    real = torch.arange(7) < torch.tensor([[7], [4]])
    padded = model.texts(tokens, real)
    torch.testing.assert_close(padded.norm(dim=-1), torch.ones(2))
    torch.testing.assert_close(model.texts(tokens[1:, :4], real[1:, :4])[0], padded[1], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_loss_is_the_mean_of_both_cross_entropies(tmp_path):
    settings = recipe(write_table("captioning", tmp_path / "files"))
    task = TASKS["image_text_retrieval"].prepare(settings, tmp_path / "data", lambda _: None)
    torch.manual_seed(3)
    model = task.build(task.recipe, task.tokenizers).eval()
    batch = task.read(task.examples.train, task.epoch(0)[0], None, torch.device("cpu"))
    logits = model(batch.pictures, batch.picture_mask, batch.texts.ids, batch.texts.padding_mask).double()
    total = 0.0
    for scores, answers in ((logits, batch.answers), (logits.T, batch.answers.T)):
        for row in range(len(scores)):
            wrong = ~answers[row]
            others = torch.cat([scores[row, row : row + 1], scores[row][wrong]])
            total += float(others.logsumexp(0) - scores[row, row]) / 2
    [loss] = task.loss(model, batch)
    assert float(loss.sum) == pytest.approx(total, rel=1e-4)
    assert loss.count == len(logits)


def test_a_picture_finds_its_text_and_a_text_its_picture(tmp_path):
    settings = recipe(write_table("captioning", tmp_path), max_updates=151, validate_every=50)
    train(settings, tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    assert loaded.test(settings.data, lambda _: None)["text_recall@1"] > 0.8
    retriever, texts = loaded.use(), [text for label, text in TEXTS.items() if label in ("left", "right", "top")]
    files = sorted((tmp_path / "files").glob("valid-*.png"))
    found = retriever.search(files[:3], texts, k=1)
    assert [hits[0].text for hits in found] == texts
    for text in texts:
        best = retriever.search(text, files, k=1)[0]
        assert retriever.search(files[best.number], texts, k=1)[0].text == text


def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(tmp_path, monkeypatch):
    settings = recipe(write_table("captioning", tmp_path))
    train(settings, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(5, patch)
        assert train(settings, tmp_path / "parts") == loop.Outcome(5, 143)
    train(settings, tmp_path / "parts")
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
