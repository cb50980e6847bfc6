"""Warm start: what goes over is the same to the bit, computes the same, and nothing is lost without a word."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.nn.masks import AttentionMask
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.training import warm_start as module
from heedful.training.warm_start import copy_start_weights, start_line, with_warm_start

OLD = [f"w{i}" for i in range(17)]
POSITIONS = {"positions": "learned", "max_positions": 53}
SHAPE = {"d_model": 14, "d_ff": 23, "heads": 2, "tie": "none", "norm": "pre", **POSITIONS}
BERT = {**SHAPE, "family": "encoder", "encoder_layers": 2, "segments": 2, "embedding_norm": True, "output_bias": True}
GPT = {**SHAPE, "family": "decoder", "decoder_layers": 3, "embedding_norm": True, "output_bias": True}


def tokenizer(words: list[str]) -> Tokenizer:
    config = TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True, mask=True)
    return train_tokenizer([" ".join(words)], config)


def trained(folder: Path, task: str, model: dict, words: list[str] = OLD, **data: Any) -> Path:
    """A model folder; its weights are random, none of them zero."""
    ours = TokenizerPair(*[tokenizer(words)] * 2)
    settings = recipe_from_dict({"task": task, "model": model, "data": {"max_length": 31, **data}}, "test")
    network = find_task(task).build(settings, ours)
    values = {name: torch.randn_like(value) for name, value in weights(network).items()}
    write_model(folder, settings, ours, values)
    return folder


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return trained(tmp_path / "bert", "masked_lm", BERT)


@pytest.fixture
def gpt(tmp_path: Path) -> Path:
    return trained(tmp_path / "gpt", "language_model", GPT)


def recipe(task: str = "translation", **train: Any) -> Recipe:
    values: dict[str, Any] = {key: str(value) if isinstance(value, Path) else value for key, value in train.items()}
    path = values.pop("tokenizer", None)
    model = values.pop("model", {})
    return recipe_from_dict(
        {
            "task": task,
            "data": {"max_length": 31, "filters": {"max_tokens": 41}, "labels": ["no", "yes", "perhaps"]},
            "decode": {"max_extra": 11},
            "tokenizer": {"path": path, "kind": "word"},
            "model": {"tie": "none", **model},
            "train": values,
        },
        "test",
    )


def begun(settings: Recipe) -> tuple[Any, list[str], TokenizerPair]:
    """A model with the weights that its recipe starts from, and the names of those that are fresh."""
    settings = with_warm_start(settings)
    ours = TokenizerPair.load(Path(settings.tokenizer.path))
    model = find_task(settings.task).build(settings, ours).eval()
    return model, copy_start_weights(settings, model, ours), ours


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.tensor([[2, 7, 11, 13, 17, 3], [2, 5, 19, 3, 0, 0]])
    return ids, ids != 0


def test_the_encoder_of_a_translator_computes_what_a_bert_computed(bert):
    model, fresh, _ = begun(recipe(start=bert))
    ids, padding_mask = texts()
    states = load_model(bert).model.backbone(ids, padding_mask, torch.zeros_like(ids))
    torch.testing.assert_close(model.encode(ids, padding_mask).states, states, atol=1e-5, rtol=1e-5)
    assert {name.split(".")[0] for name in fresh} == {"decoder", "target_embedding", "output"}


def test_the_decoder_of_a_translator_computes_what_a_gpt_computed_until_it_looks_at_a_source(gpt):
    model, fresh, _ = begun(recipe(start_decoder=gpt))
    for block in model.decoder.blocks:
        torch.nn.init.zeros_(block.cross_attention.out.weight)
        torch.nn.init.zeros_(block.cross_attention.out.bias)
    ids, padding_mask = texts()
    logits = load_model(gpt).model(ids, padding_mask)
    torch.testing.assert_close(model(ids, padding_mask, ids, padding_mask), logits)
    assert all("cross_" in name for name in fresh if name.startswith("decoder"))
    assert not any(name.startswith(("target_embedding", "output")) for name in fresh)


def test_two_models_become_one(bert, gpt):
    model, fresh, _ = begun(recipe(start=bert, start_decoder=gpt))
    first, second = weights(load_model(bert).model), weights(load_model(gpt).model)
    found = weights(model)
    assert torch.equal(found["source_embedding.weight"], first["backbone.embedding.weight"])
    assert torch.equal(found["target_embedding.weight"], second["backbone.embedding.weight"])
    assert torch.equal(found["output.bias"], second["output.bias"])
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (2, 3)
    assert all("cross_" in name for name in fresh)


@pytest.mark.parametrize(("tie", "message"), [("all", 'model.tie = "all"'), ("output", 'model.tie = "output"')])
def test_one_matrix_does_not_begin_with_two(bert, gpt, tie, message):
    with pytest.raises(
        InputError, match=rf"gpt: its \S+ would overwrite the weights that \S+ has been given; {message}"
    ):
        begun(recipe(start=bert, start_decoder=gpt, model={"tie": tie}))


def test_a_tied_translator_begins_with_one_matrix(bert):
    model, fresh, _ = begun(recipe(start=bert, model={"tie": "all"}))
    assert torch.equal(model.output.weight, load_model(bert).model.backbone.embedding.weight)
    assert not any("embedding.weight" in name or name == "output.weight" for name in fresh)


def test_halves_of_different_shapes_are_refused(bert, tmp_path):
    other = trained(tmp_path / "other", "language_model", {**GPT, "d_ff": 29, "norm": "post"})
    with pytest.raises(InputError, match="cannot be halves of one model: d_ff is 23 or 29; norm is 'pre' or 'post'"):
        with_warm_start(recipe(start=bert, start_decoder=other))


def test_a_decoder_begins_with_a_language_model_only(bert, gpt):
    with pytest.raises(InputError, match=r'only a language model can .* this model is of family "encoder"'):
        with_warm_start(recipe(start_decoder=bert))
    with pytest.raises(InputError, match=r'the task is "classification"; use train\.start'):
        with_warm_start(recipe("classification", start_decoder=gpt, model={"family": "decoder"}))


@pytest.mark.parametrize("key", ["start", "start_decoder"])
def test_a_model_that_is_not_there_is_refused_with_the_key_that_names_it(key, tmp_path):
    with pytest.raises(InputError, match=rf'train\.{key}: no model ".*/missing": no such folder'):
        with_warm_start(recipe(**{key: tmp_path / "missing"}))


def test_texts_longer_than_the_learned_positions_are_refused_with_the_remedy(bert, tmp_path):
    short = trained(tmp_path / "short", "masked_lm", {**BERT, "max_positions": 29}, max_length=29)
    with pytest.raises(InputError, match=r"has learned 29 positions, .* = 31 tokens: set data\.max_length = 29"):
        with_warm_start(recipe("classification", start=short, model={"family": "encoder"}))


def test_segments_without_a_table_of_positions_are_refused(tmp_path):
    rotary = trained(tmp_path / "rotary", "masked_lm", {**BERT, "positions": "rotary", "d_k": 6})
    with pytest.raises(InputError, match='it has positions = "rotary"; start from one with segments = 0'):
        begun(recipe(start=rotary))


@pytest.mark.parametrize("task", ["classification", "regression", "ranking"])
def test_a_task_on_texts_begins_with_the_whole_trunk(bert, task):
    model, fresh, _ = begun(recipe(task, start=bert, model={"family": "encoder"}))
    old = weights(load_model(bert).model)
    for name, value in weights(model.backbone).items():
        assert torch.equal(value, old[f"backbone.{name}"])
    assert fresh == ([] if task == "ranking" else ["output.weight", "output.bias"])


def test_a_translator_begins_with_a_translator(tmp_path):
    shape = {**SHAPE, "encoder_layers": 1, "decoder_layers": 1}
    old = trained(tmp_path / "old", "translation", shape, filters={"max_tokens": 3})
    model, fresh, _ = begun(recipe(start=old))
    there = weights(load_model(old).model)
    assert all(torch.equal(value, there[name]) for name, value in weights(model).items())
    assert fresh == []


LAYERS = {"start_encoder_layers": [3, 1, 3, 2], "start_decoder_layers": [2]}


def test_a_translator_begins_with_the_chosen_layers_of_another(tmp_path):
    old = trained(
        tmp_path / "old", "translation", {**SHAPE, "encoder_layers": 3, "decoder_layers": 2}, filters={"max_tokens": 3}
    )
    model, fresh, _ = begun(recipe(start=old, **LAYERS))
    there = load_model(old).model
    assert fresh == []
    for ours, theirs, numbers in (
        (model.encoder.blocks, there.encoder.blocks, LAYERS["start_encoder_layers"]),
        (model.decoder.blocks, there.decoder.blocks, LAYERS["start_decoder_layers"]),
    ):
        assert len(ours) == len(numbers)
        for block, number in zip(ours, numbers, strict=True):
            assert all(map(torch.equal, block.parameters(), theirs[number - 1].parameters()))
    assert model.encoder.blocks[0] is not model.encoder.blocks[2]


def test_a_gpt_begins_with_the_chosen_layers_of_another(gpt):
    model, _, _ = begun(recipe("language_model", start=gpt, model={"family": "decoder"}, start_decoder_layers=[3]))
    there = load_model(gpt).model
    [block] = model.backbone.stack.blocks
    assert all(map(torch.equal, block.parameters(), there.backbone.stack.blocks[2].parameters()))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ({"start_decoder_layers": [4]}, r"train.start_decoder_layers = \[4\]: .*gpt has 3 decoder layers"),
        ({"start_encoder_layers": [1]}, r"train.start_encoder_layers = \[1\]: .*gpt has 0 encoder layers"),
    ],
)
def test_layers_that_a_start_model_lacks_are_refused(gpt, layers, message):
    with pytest.raises(InputError, match=message):
        begun(recipe("language_model", start=gpt, model={"family": "decoder"}, **layers))


def test_layers_without_a_start_model_are_refused():
    with pytest.raises(InputError, match=r"choose layers of train.start, which is not set"):
        recipe(start_decoder_layers=[1])


def test_a_recipe_decides_the_bpe_dropout_of_its_start_models_tokenizer(tmp_path):
    ours = TokenizerPair(*[train_tokenizer(OLD, TokenizerConfig(vocab_size=300))] * 2)
    settings = recipe_from_dict({"model": {"d_model": 14, "heads": 2, "tie": "all"}}, "test")
    write_model(tmp_path / "old", settings, ours, weights(find_task("translation").build(settings, ours)))
    settings = recipe(start=tmp_path / "old")
    settings = with_warm_start(replace(settings, tokenizer=TokenizerConfig(dropout=0.3)))
    assert (settings.tokenizer.vocab_size, settings.tokenizer.dropout) == (300, 0.3)


TRANSLATORS = {
    "transformer": {**SHAPE, "encoder_layers": 2, "decoder_layers": 1},
    "transformer, one matrix": {**SHAPE, "encoder_layers": 2, "decoder_layers": 1, "tie": "all"},
    "recurrent": {"architecture": "recurrent", "cell": "gru", "layers": 2, "d_model": 14, "tie": "none"},
    "convolutional": {"architecture": "convolutional", "d_model": 14, "tie": "none", "max_positions": 53},
    "bytenet": {"architecture": "bytenet", "d_model": 14, "encoder_layers": 3, "decoder_layers": 3, "tie": "none"},
}


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("kind", TRANSLATORS)
def test_a_task_on_texts_begins_with_the_encoder_of_a_translator_and_computes_the_same(tmp_path, task, kind):
    there = trained(tmp_path / "there", "translation", TRANSLATORS[kind], filters={"max_tokens": 3})
    own = {"family": "encoder", "architecture": TRANSLATORS[kind].get("architecture", "transformer")}
    model, fresh, _ = begun(recipe(task, start=there, model=own))
    ids, padding_mask = texts()
    translator = load_model(there).model
    x, mask = translator.source_embedding(ids), AttentionMask(padding_mask, ids.size(1), causal=False)
    expected = translator.encoder(x, mask)
    torch.testing.assert_close(model.backbone(ids, padding_mask), expected)
    assert not any(name.startswith("backbone.") for name in fresh)


def test_a_causal_classifier_does_not_begin_with_a_translator(tmp_path):
    there = trained(tmp_path / "there", "translation", TRANSLATORS["transformer"], filters={"max_tokens": 3})
    with pytest.raises(InputError, match=r'a model of family "encoder_decoder" .* needs a model of family'):
        with_warm_start(recipe("classification", start=there, model={"family": "decoder"}))


FAMILIES = {"translation": {}, "classification": {"family": "encoder"}, "masked_lm": {"family": "encoder"}}
TOKEN_ROWS = {
    "translation": {"backbone.embedding.weight": "source_embedding.weight"},
    "classification": {"backbone.embedding.weight": "backbone.embedding.weight"},
    "masked_lm": {name: name for name in ("backbone.embedding.weight", "output.weight", "output.bias")},
}
NEW = {"more": [*reversed(OLD), "new1", "new2"], "other": ["new1", *OLD[5:], "new2"], "same size": [*OLD[1:], "new1"]}


def saved(folder: Path, words: list[str]) -> Path:
    tokenizer(words).save(folder)
    return folder


@pytest.mark.parametrize("task", ["translation", "classification"])
def test_another_vocabulary_is_refused_with_all_that_differs(bert, tmp_path, task):
    path = saved(tmp_path / "new", NEW["other"])
    with pytest.raises(InputError) as caught:
        with_warm_start(recipe(task, start=bert, tokenizer=path, model=FAMILIES[task]))
    message = str(caught.value)
    assert f"the vocabulary of {path} differs from that of {bert}: 17 pieces are the same" in message
    assert "5 are only in the model (▁w0, ▁w1, ▁w2, ▁w3, ▁w4), " in message
    assert "2 only in the recipe's vocabulary (▁new1, ▁new2)" in message
    assert all(f'"{remedy}"' in message for remedy in ("keep", "extend", "remap"))


def test_keep_takes_the_vocabulary_of_the_model(bert, tmp_path):
    path = saved(tmp_path / "new", NEW["other"])
    settings = recipe("ranking", start=bert, tokenizer=path, vocabulary="keep", model={"family": "encoder"})
    model, _, ours = begun(settings)
    assert ours.source.digest == load_model(bert).tokenizers.source.digest
    assert torch.equal(model.backbone.embedding.weight, load_model(bert).model.backbone.embedding.weight)


@pytest.mark.parametrize(
    ("vocabulary", "words"), [("extend", "more"), ("remap", "more"), ("remap", "other"), ("remap", "same size")]
)
@pytest.mark.parametrize("task", ["masked_lm", "classification", "translation"])
def test_each_piece_keeps_its_own_vector(bert, tmp_path, vocabulary, words, task):
    path = saved(tmp_path / "new", NEW[words])
    settings = recipe(task, start=bert, tokenizer=path, vocabulary=vocabulary, model=FAMILIES[task])
    model, _, ours = begun(settings)
    old = load_model(bert)
    rows = {piece: row for row, piece in enumerate(old.tokenizers.source.pieces(range(len(old.tokenizers.source))))}
    for there, here in TOKEN_ROWS[task].items():
        before, after = old.model.get_parameter(there), model.get_parameter(here)
        assert len(after) == len(ours.source)
        for row, piece in enumerate(ours.source.pieces(range(len(ours.source)))):
            known = any(torch.equal(after[row], vector) for vector in before)
            assert known == (piece in rows)
            assert piece not in rows or torch.equal(after[row], before[rows[piece]])
    stack = model.encoder if task == "translation" else model.backbone.stack
    for name, value in weights(stack.blocks).items():
        assert torch.equal(value, weights(old.model.backbone.stack.blocks)[name])


def test_extend_refuses_to_lose_pieces(bert, tmp_path):
    path = saved(tmp_path / "new", NEW["other"])
    with pytest.raises(InputError, match=r'"extend": \S+ lacks 5 pieces of \S+, such as ▁w0, ▁w1, ▁w2, ▁w3, ▁w4'):
        with_warm_start(recipe(start=bert, tokenizer=path, vocabulary="extend"))


def test_two_vocabularies_cannot_both_be_kept(bert, tmp_path):
    other = trained(tmp_path / "other", "language_model", GPT, NEW["other"])
    for vocabulary in (None, "keep"):
        with pytest.raises(InputError, match=r"differs from that of \S+other"):
            with_warm_start(recipe(start=bert, start_decoder=other, vocabulary=vocabulary))
    model, _, ours = begun(recipe(start=bert, start_decoder=other, vocabulary="remap"))
    [row] = ours.source.encode("w7")
    [there] = tokenizer(NEW["other"]).encode("w7")
    assert torch.equal(model.target_embedding.weight[row], load_model(other).model.backbone.embedding.weight[there])
    assert torch.equal(model.source_embedding.weight, load_model(bert).model.backbone.embedding.weight)


def test_models_that_share_nothing_are_refused(bert, monkeypatch):
    monkeypatch.setattr(module, "pairs_of_names", lambda *_: {})
    with pytest.raises(InputError, match="no weight of this model fits the new model"):
        begun(recipe(start=bert))


def test_without_a_start_nothing_changes():
    settings = recipe()
    assert with_warm_start(settings) == settings
    assert copy_start_weights(settings, torch.nn.Linear(3, 5), TokenizerPair(*[tokenizer(OLD)] * 2)) == []


@pytest.mark.parametrize("task", ["classification", "regression", "ranking", "masked_lm"])
def test_what_a_run_begins_with_is_said_for_every_task(bert, task):
    settings = recipe(task, start=bert, model={"family": "encoder"})
    model, fresh, _ = begun(settings)
    line = start_line(settings, model, fresh)
    taken = sum(value.numel() for name, value in model.named_parameters() if name not in fresh)
    assert line.startswith(f"starts with the weights of {bert}: backbone")
    assert f"({taken:,} of {sum(value.numel() for value in model.parameters()):,} parameters)" in line
    assert line.endswith(f"fresh: {', '.join(fresh) or 'none'}")
