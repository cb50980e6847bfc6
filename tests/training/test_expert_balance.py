"""The balance of experts is a sum over sequences, whatever their batches, padding and processes."""

import pytest
import torch
from toy_step import CPU, learner, rows

from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.training.expert_balance import balance, router_scores

EXPERTS = {"feed_forward": "experts", "experts": 5, "d_expert": 11, "activation": "swiglu"}


def test_the_balance_is_the_formula_of_deepseek_v2_of_each_sequence():
    scores = torch.randn(2, 7, 5, dtype=torch.float64)
    real = torch.tensor([[True] * 7, [False] * 3 + [True] * 4])
    want = torch.zeros((), dtype=torch.float64)
    for sequence in (scores[0], scores[1, 3:]):
        length = len(sequence)
        for expert in range(5):
            chosen = sum(expert in row.topk(2).indices.tolist() for row in sequence)
            want += length * (5 / (2 * length) * chosen) * sequence.softmax(-1)[:, expert].mean()
    torch.testing.assert_close(balance(scores, real, 2), want)


def test_the_balance_of_evenly_used_experts_is_the_number_of_tokens():
    scores = torch.eye(4).repeat(2, 1)[None] * 20
    real = torch.ones(1, 8, dtype=torch.bool)
    torch.testing.assert_close(balance(scores, real, 1), torch.tensor(8.0), atol=1e-4, rtol=0)
    torch.testing.assert_close(
        balance(scores[:, :1].expand(1, 8, 4), real, 1), torch.tensor(4 * 8.0), atol=1e-4, rtol=0
    )


def test_a_sequence_that_is_padding_has_no_balance():
    assert balance(torch.randn(1, 3, 5), torch.zeros(1, 3, dtype=torch.bool), 2) == 0


def gradients(step, batches) -> torch.Tensor:
    counts, tokens = [sum(batch.counts[0] for batch in batches)], sum(batch.tokens for batch in batches)
    step.gradient(batches, 1, step.divisors(counts, tokens), len(batches))
    return torch.cat([parameter.grad.flatten() for parameter in step.model.parameters()])


def batch(ids):
    return collate(ids, ids, CPU)


def test_the_gradient_of_several_batches_with_less_padding_is_that_of_one():
    ids = rows(5, 3, 2)
    splits = ([batch(ids)], [batch(ids[:1]), batch(ids[1:, :3])])
    one, several = (gradients(learner(model=EXPERTS, balance=1.0), batches) for batches in splits)
    torch.testing.assert_close(several, one, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "autocast"])
def test_blocks_that_are_computed_again_have_the_same_balance(precision):
    steps = [
        learner(precision, dropout=0.1, model=EXPERTS, balance=1.0, activation_checkpointing=again)
        for again in (False, True)
    ]
    batches = [batch(rows(5, 3, 2)), batch(rows(7, 2))]
    for number in (1, 2):
        assert len({str(step.update(batches, number)) for step in steps}) == 1
    pairs = zip(*(step.model.parameters() for step in steps), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_reported_losses_are_those_of_the_task_alone():
    updates = [learner(model=EXPERTS, balance=weight).update([batch(rows(5, 3))], 1) for weight in (0.0, 10.0)]
    assert updates[0].losses == updates[1].losses
    assert updates[0].counts == updates[1].counts == [8]
    assert updates[0].norm != updates[1].norm


def test_training_with_the_balance_evens_out_the_experts():
    def load_of(weight: float) -> float:
        step, texts = learner(model=EXPERTS, balance=weight, lr=0.003), batch(rows(9, 8, 8))
        for number in range(1, 31):
            step.update([texts], number)
        with torch.no_grad(), router_scores(step.model) as layers:
            step.objective(step.model, texts)
        assert len(layers) == 3  # two in the encoder, one in the decoder
        return sum(float(balance(*layer)) for layer in layers)

    assert load_of(1.0) < load_of(0.0)


def test_a_model_without_experts_has_no_balance():
    step = learner(balance=1.0)
    assert not step.balances_experts
    assert step.divisors([3], 5) == [3]
