from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heedful.errors import InputError
from heedful.tasks.masked_lm import MaskedLanguageModelling
from heedful.tasks.specs import check_task
from heedful.tasks.task import ALONE
from heedful.text.sequences import segments
from heedful.text.tokenizer import EOS, MASK, PAD
from heedful.training.improvement import higher_is_better
from heedful.training.training_step import TrainingStep
from toy_tasks import recipe, write_text

CPU = torch.device("cpu")


def prepared(folder, **tables) -> MaskedLanguageModelling:
    settings = recipe("masked_lm", write_text(folder / "text"), **tables)
    return MaskedLanguageModelling.prepare(settings, folder / "data", lambda _: None)


@pytest.fixture
def task(tmp_path):
    return prepared(tmp_path)


def built(task):
    torch.manual_seed(0)
    return task.build(task.recipe, task.tokenizers).eval()


@torch.no_grad()
def test_the_loss_is_that_of_chosen_tokens_and_of_neighbours(task):
    model, batch = built(task), task.data.batch(task.data.epoch(0)[0], 0, CPU)
    tokens, neighbours = task.loss(model, batch)
    logits = model(batch.inputs, batch.padding_mask, batch.segments).double()
    want = sum(
        F.cross_entropy(logits[row, place], batch.targets[row, place]).item()
        for row, place in batch.masked.nonzero().tolist()
    )
    assert tokens.sum.item() == tokens.nll.item() == pytest.approx(want, rel=1e-5)
    states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
    told = model.next_sentence(states, batch.padding_mask).double().log_softmax(-1)
    assert neighbours.sum.item() == pytest.approx(-told.gather(1, batch.not_next[:, None]).sum().item(), rel=1e-5)
    assert (tokens.count, neighbours.count) == batch.counts == (int(batch.masked.sum()), len(batch.inputs))


@torch.no_grad()
def test_what_was_not_chosen_does_not_count(task):
    model, batch = built(task), task.data.batch(task.data.epoch(0)[0], 0, CPU)
    other = replace(batch, targets=torch.where(batch.masked, batch.targets, 7))
    assert task.loss(model, other)[0].sum == task.loss(model, batch)[0].sum
    assert not torch.equal(other.targets, batch.targets)


def test_hidden_tokens_are_those_that_differ_and_nothing_else_changes(task):
    for ids in task.data.epoch(1):
        batch = task.data.batch(ids, 1, CPU)
        assert torch.equal(batch.inputs[~batch.masked], batch.targets[~batch.masked])
        assert bool((batch.targets[batch.masked] > MASK).all())
        assert torch.equal(batch.padding_mask, batch.targets != PAD)
        assert batch.tokens == int(batch.padding_mask.sum())


def test_segments_are_those_that_a_reader_of_pairs_would_give(task):
    for ids in task.data.epoch(0):
        batch = task.data.batch(ids, 0, CPU)
        assert (segments(batch.targets.numpy()) == batch.segments.numpy()).all()
        assert ((batch.targets == EOS).sum(1) == 2).all()


def test_masks_depend_on_seed_epoch_and_sequence_and_not_on_the_batch(task):
    rows = np.concatenate(task.data.epoch(0))
    together = task.data.batch(rows, 0, CPU)
    order = np.random.default_rng(3).permutation(len(rows))
    shuffled = task.data.batch(rows[order], 0, CPU)
    assert torch.equal(shuffled.inputs, together.inputs[order])
    assert torch.equal(shuffled.masked, together.masked[order])
    for row in range(0, len(rows), 29):
        alone = task.data.batch(rows[row : row + 1], 0, CPU)
        assert torch.equal(alone.inputs[0], together.inputs[row, : alone.inputs.size(1)])
    other_seed = copy(task.data)
    other_seed.recipe = replace(task.recipe, train=replace(task.recipe.train, seed=2))
    for batch in (task.data.batch(rows, 1, CPU), other_seed.batch(rows, 0, CPU)):
        assert not torch.equal(batch.masked, together.masked)


def test_strangers_come_from_another_document_and_neighbours_from_the_same(task):
    """In this text all words of a document name its topic, and neighbours share it."""
    tokenizer = task.tokenizers.source
    pairs = [batch for ids in task.data.epoch(0) for batch in [task.data.batch(ids, 0, CPU)]]
    strange = 0
    for batch in pairs:
        for row, segment, stranger in zip(batch.targets.tolist(), batch.segments, batch.not_next.tolist(), strict=True):
            topics = [
                {piece[1:3] for piece in tokenizer.pieces([i for i, s in zip(row, segment, strict=True) if s == side])}
                for side in (0, 1)
            ]
            topics = [{topic for topic in side if topic[:1] == "T"} for side in topics]
            assert stranger or topics[0] == topics[1] or not all(topics)
            strange += stranger
    assert 0.3 < strange / sum(len(batch.inputs) for batch in pairs) < 0.7


def test_uneven_batches_accumulate_to_the_gradient_of_one_for_both_terms(task):
    """Each term has a divisor of its own, so that a mean of means could not give this."""
    settings = replace(task.recipe, model=replace(task.recipe.model, dropout=0.0))
    rows = np.concatenate(task.data.epoch(0))[:11]
    gradients, updates = [], []
    for parts in ([rows], [rows[:1], rows[1:8], rows[8:]]):
        torch.manual_seed(0)
        learner = TrainingStep(MaskedLanguageModelling.build(settings, task.tokenizers), task.loss, settings)
        learner.step = max  # leave the gradient where it is
        batches = [task.data.batch(part, 0, CPU) for part in parts]
        updates.append(learner.update(batches, 1))
        gradients.append([parameter.grad for parameter in learner.model.parameters()])
    for whole, cut in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, cut, atol=1e-6, rtol=1e-4)
    assert updates[0].counts == updates[1].counts
    assert updates[0].losses == pytest.approx(updates[1].losses, rel=1e-5)


def test_single_passages_have_one_loss(tmp_path):
    task = prepared(tmp_path, masking={"next_sentence": False})
    with torch.no_grad():
        model, batch = built(task), task.data.batch(task.data.epoch(0)[0], 0, CPU)
        assert len(task.loss(model, batch)) == len(batch.counts) == 1
        assert set(task.evaluate(model).scores) == {"loss", "perplexity", "accuracy"}


@torch.no_grad()
def test_scores_are_always_of_the_same_masks_and_count_what_is_right(task):
    model = built(task)
    scores = task.evaluate(model).scores
    assert task.evaluate(model).scores == scores
    right = chosen = told = pairs = 0
    for batch in ALONE.batches(task.data, model):
        logits = model(batch.inputs, batch.padding_mask, batch.segments).argmax(-1)
        right += int((logits == batch.targets)[batch.masked].sum())
        chosen += int(batch.masked.sum())
        states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
        told += int((model.next_sentence(states, batch.padding_mask).argmax(-1) == batch.not_next).sum())
        pairs += len(batch.inputs)
    assert (scores["accuracy"], scores["next_sentence_accuracy"]) == (right / chosen, told / pairs)
    assert scores["loss"] > scores["next_sentence_loss"] > 0


def test_whole_words_are_hidden_together(tmp_path):
    tables = {"tokenizer": {"kind": "character", "mask": True, "pretokenized": False}, "data": {"max_length": 61}}
    tables["train"] = {"batch_tokens": 1009}
    task = prepared(tmp_path, **tables, masking={"whole_words": True})
    batch = task.data.batch(task.data.epoch(0)[0], 0, CPU)
    words = torch.tensor([task.tokenizers.source.word_of_piece(row) for row in batch.targets.tolist()])
    for row in range(len(words)):
        for word in words[row, batch.masked[row]].unique():
            assert batch.masked[row][words[row] == word].all()


def test_a_tokenizer_without_a_mask_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"set tokenizer\.mask = true"):
        prepared(tmp_path, tokenizer={"mask": False})


def test_validation_text_of_one_document_is_refused_before_training(tmp_path):
    folder = write_text(tmp_path / "text")
    (folder / "one.txt").write_text("T1a T1b! T1c!\n")
    with pytest.raises(InputError, match=r"or validation text is a single document"):
        prepared(tmp_path, data={"documents": "line", "valid": {"source": "one.txt"}})


def test_a_lower_loss_of_neighbours_is_better_and_a_score_that_is_not_there_is_told(task):
    settings = replace(task.recipe, train=replace(task.recipe.train, best="next_sentence_loss"))
    check_task(MaskedLanguageModelling.spec, settings)
    assert higher_is_better({"next_sentence_loss": 0.3}, "next_sentence_loss") > higher_is_better(
        {"next_sentence_loss": 0.5}, "next_sentence_loss"
    )
    with pytest.raises(InputError, match=r'train\.best = "next_sentence_loss": this run has the scores loss, accuracy'):
        higher_is_better({"loss": 1.0, "accuracy": 0.5}, "next_sentence_loss")
