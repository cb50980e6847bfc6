import numpy as np
import pytest
import torch

from heedful.architectures import EncoderDecoder
from heedful.checkpoint import load_model
from heedful.config.load import load_recipe
from heedful.config.schema import DecodeConfig, ModelConfig
from heedful.losses import reference_cross_entropy
from heedful.metrics import Scoring, score
from heedful.metrics.bootstrap import example_scores
from heedful.metrics.texts import Texts
from heedful.predictors.translator import Translator
from heedful.search.beam import greedy_search
from heedful.tasks import find_task
from heedful.tasks.parts.sequence_to_sequence import collate, loss, texts_of
from heedful.tasks.specs import best_score_name, output_metrics
from heedful.tasks.task import Evaluation
from matching import learned, recipe, write_matching

SOURCE = np.array([[5, 6, 7, 3], [8, 3, 0, 0]])
TARGET = np.array([[9, 3, 0], [10, 11, 3]])


def test_the_decoder_reads_the_target_shifted_right_behind_bos():
    batch = collate(SOURCE, TARGET, torch.device("cpu"))
    assert batch.target_in.tolist() == [[2, 9, 3], [2, 10, 11]]
    assert batch.target_out.tolist() == TARGET.tolist()
    assert batch.source_padding_mask.int().tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert batch.target_padding_mask.int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert (batch.source_tokens, batch.target_tokens, batch.tokens) == (6, 5, 11)


def test_the_loss_counts_real_target_tokens_and_nothing_else():
    torch.manual_seed(0)
    model = EncoderDecoder(ModelConfig(d_model=16, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1), 13, 13).eval()
    got = loss(model, collate(SOURCE, TARGET, torch.device("cpu")), 0.1)
    rows = []
    for source, target in ((SOURCE[:1], TARGET[:1, :2]), (SOURCE[1:, :2], TARGET[1:])):
        batch = collate(source, target, torch.device("cpu"))
        hidden = model.hidden(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask)
        rows.append(reference_cross_entropy(hidden[0], model.output.weight, batch.target_out[0], 0.1))
    torch.testing.assert_close(got.sum, rows[0].sum + rows[1].sum)
    torch.testing.assert_close(got.nll, rows[0].nll + rows[1].nll)
    assert got.count == 5


def test_i_love_you_and_this_is_a_book_are_translated_exactly_once_they_are_learned():
    torch.manual_seed(1)
    i_love_you, this_is_a_book = [4, 5, 6, 3, 0, 0], [10, 11, 12, 13, 14, 3]  # the second one in Chinese
    translations = np.array([[7, 8, 9, 3, 0], [15, 16, 17, 18, 3]])
    batch = collate(np.array([i_love_you, this_is_a_book]), translations, torch.device("cpu"))
    config = ModelConfig(d_model=32, d_ff=37, heads=2, encoder_layers=1, decoder_layers=1, norm="pre", dropout=0.0)
    model = EncoderDecoder(config, 19, 19)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(20):
        optimizer.zero_grad()
        loss(model, batch, 0.0).sum.backward()
        optimizer.step()
    found = greedy_search(model.start(batch.source, batch.source_padding_mask), [9, 9], DecodeConfig(beam=1))
    assert [(best.tokens, best.complete) for (best,) in found] == [([7, 8, 9], True), ([15, 16, 17, 18], True)]


def test_a_model_learns_to_answer(tmp_path):
    write_matching(tmp_path)
    settings = recipe(tmp_path, task="text_to_text", train={"max_updates": 151}, optimizer={"lr": 0.005})
    scores = learned(settings, tmp_path / "run")
    assert scores["exact_match"] > 0.9
    answers = load_model(tmp_path / "run").use_as(Translator).translate(["q3 q5", "", "q7"])
    assert answers == ["a3 a5", "", "a7"]


MEASURES = {
    "translation": {"bleu"},
    "summarisation": {"rouge1", "rouge2", "rougeL"},
    "dialogue": {"rougeL", "distinct_1", "distinct_2"},
    "text_to_text": {"exact_match"},
}


def prepared(folder, task, **tables):
    write_matching(folder)
    return find_task(task).prepare(recipe(folder, task=task, **tables), folder / "prepared", str)


@pytest.mark.parametrize("name", MEASURES)
def test_a_task_has_the_scores_that_it_names(name, tmp_path):
    task = prepared(tmp_path, name)
    model = task.build(task.recipe, task.tokenizers).eval()
    with torch.no_grad():
        scores = task.evaluate(model).scores
    assert set(scores) == set(task.spec.metrics) == {"loss", "perplexity"} | MEASURES[name]
    assert best_score_name(task.spec, task.recipe) == task.spec.metrics[0]
    assert task.spec.command == ("heedful translate" if name == "translation" else "heedful write")


@pytest.mark.parametrize("name", MEASURES)
def test_without_decoding_the_loss_is_left(name, tmp_path):
    task = prepared(tmp_path, name, train={"validate_decoding": False})
    model = task.build(task.recipe, task.tokenizers).eval()
    with torch.no_grad():
        assert set(task.evaluate(model).scores) == {"loss", "perplexity"}
        assert set(task.evaluate(model, Evaluation(is_test=True)).scores) == set(task.spec.metrics)
    assert best_score_name(task.spec, task.recipe) == "loss"


def test_a_test_searches_as_the_recipe_says_and_a_validation_greedily(tmp_path, monkeypatch):
    task = prepared(tmp_path, "text_to_text", decode={"beam": 3, "n_best": 2, "max_extra": 7})
    model = task.build(task.recipe, task.tokenizers).eval()
    configs, texts = [], Texts(["w1"], ["w1"])
    monkeypatch.setattr(task, "decode_all", lambda _, config, __: configs.append(config) or texts)
    with torch.no_grad():
        task.evaluate(model)
        task.evaluate(model, Evaluation(is_test=True))
    assert [(c.beam, c.n_best, c.max_extra) for c in configs] == [(1, 1, 7), (3, 1, 7)]


def test_measures_are_means_over_texts(tmp_path):
    outputs, references = ["the cat sat", "a dog", "no"], ["the cat", "a  dog", "yes"]
    measured = {name: measure(prepared(tmp_path / name, name), outputs, references) for name in folders(tmp_path)}
    assert measured["text_to_text"] == {"exact_match": pytest.approx(1 / 3)}
    assert measured["summarisation"] == pytest.approx(
        {"rouge1": (0.8 + 1 + 0) / 3, "rouge2": (2 / 3 + 1 + 0) / 3, "rougeL": (0.8 + 1 + 0) / 3}
    )
    assert measured["dialogue"] == pytest.approx({"rougeL": 0.6, "distinct_1": 1.0, "distinct_2": 3 / 6})
    assert measured["translation"] == {"bleu": score(outputs, [references], Scoring(metrics=("bleu",)))[0].value}


def measure(task, outputs, references):
    texts = texts_of(outputs, references, task.recipe, task.tokenizers)
    return example_scores(texts, output_metrics(task.spec, task.recipe)).whole


def folders(place):
    for name in MEASURES:
        (place / name).mkdir()
    return MEASURES


def test_a_dialogue_is_read_from_turns(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"source": ["q1", "a1", "q2"]}\n{"source": ["q3", "a3"]}\n')
    corpus = {"source": "train.jsonl"}
    settings = recipe(tmp_path, task="dialogue", data={"train": [corpus], "valid": corpus})
    task = find_task("dialogue").prepare(settings, tmp_path / "prepared", str)
    assert task.data.examples.valid_text == [("q1", "a1"), ("q1\ta1", "q2"), ("q3", "a3")]
    assert [len(store) for store in task.data.examples.train] == [3]


def test_outputs_of_any_length_are_the_default_of_all_but_translation(tmp_path):
    file = tmp_path / "config.toml"
    for name in MEASURES:
        file.write_text(f'task = "{name}"\n')
        assert load_recipe(file).data.filters.max_ratio == (9.0 if name == "translation" else None)
        file.write_text(f'task = "{name}"\ndata.filters.max_ratio = 5.0\n')
        assert load_recipe(file).data.filters.max_ratio == 5.0


def test_bpe_dropout_makes_no_text_longer_than_the_learned_positions(tmp_path):
    tables = {
        "tokenizer": {"kind": "bpe", "vocab_size": 311, "dropout": 0.99},
        "data": {"filters": {"max_tokens": 7}},
        "decode": {"max_extra": 2},
    }
    widths = []
    for name, model in (("free", {}), ("learned", {"positions": "learned", "max_positions": 9})):
        (tmp_path / name).mkdir()
        task = prepared(tmp_path / name, "translation", model=model, **tables)
        batches = [task.data.batch(ids, 0, torch.device("cpu")) for ids in task.data.epoch(0)]
        widths.append([max(getattr(each, side).shape[1] for each in batches) for side in ("source", "target_in")])
    assert min(widths[0]) > 9
    assert widths[1] == [9, 9]
