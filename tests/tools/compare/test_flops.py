"""FLOPs are those of the formulas: matrix products forward and backward, fused layers taken apart."""

import torch
from torch import nn
from torch.nn import functional as F

from heedful.architectures import weights
from heedful.tasks import find_task
from heedful.tools.compare.measure import count_flops, flops_per_update
from reversal import recipe, write_pairs


def test_a_product_takes_two_for_each_multiplication_with_its_addition():
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    assert count_flops(lambda: F.linear(x, weight)) == 2 * 5 * 7 * 11


def test_a_backward_pass_takes_twice_the_forward_pass():
    layer, x = nn.Linear(7, 11), torch.randn(5, 7, requires_grad=True)
    assert count_flops(lambda: layer(x).sum().backward()) == 3 * 2 * 5 * 7 * 11


def test_inference_mode_hides_nothing():
    layer, x = nn.Linear(7, 11), torch.randn(5, 7)
    with torch.inference_mode():
        assert count_flops(lambda: layer(x)) == 2 * 5 * 7 * 11


def test_fused_attention_is_counted_as_its_two_products():
    q, k, v = torch.randn(1, 3, 5, 8), torch.randn(1, 3, 7, 8), torch.randn(1, 3, 7, 8)
    assert count_flops(lambda: F.scaled_dot_product_attention(q, k, v)) == 2 * 2 * 3 * 5 * 7 * 8


def test_recurrent_layers_are_counted_as_their_products():
    for layer, gates in ((nn.RNN(7, 11), 1), (nn.GRU(7, 11), 3), (nn.LSTM(7, 11), 4)):
        products = 2 * 13 * 5 * gates * 11 * (7 + 11)
        x = torch.randn(13, 5, 7)
        with torch.no_grad():
            assert count_flops(lambda layer=layer, x=x: layer(x)) == products
        assert count_flops(lambda layer=layer, x=x: layer(x)[0].sum().backward()) > 2 * products


def test_convolutions_are_counted():
    layer, x = nn.Conv1d(3, 5, 2), torch.randn(7, 3, 11)
    assert count_flops(lambda: layer(x)) == 2 * 7 * 10 * 5 * 3 * 2


def test_what_is_fused_stays_fused_afterwards():
    before = torch.backends.mkldnn.enabled
    count_flops(lambda: None)
    assert torch.backends.mkldnn.enabled == before


def test_an_update_takes_its_products_and_leaves_the_model_as_it_was(tmp_path):
    for seed, name in enumerate(("train", "valid")):
        write_pairs(tmp_path, name, 31, seed)
    toy = recipe(tmp_path, train={"accumulate": 2})
    task = find_task(toy.task).prepare(toy, tmp_path / "data", lambda _: None)
    model = task.build(toy, task.tokenizers).eval()
    before = {name: value.clone() for name, value in weights(model).items()}
    found = flops_per_update(task, model, toy)
    batches = [task.data.batch(ids, 0, torch.device("cpu")) for ids in task.data.epoch(0)[:4]]

    def step(number):
        model.zero_grad()
        for batch in batches[number : number + 2]:
            [loss] = task.loss(model, batch)
            loss.sum.backward()

    assert found == (count_flops(lambda: step(0)) + count_flops(lambda: step(2))) / 2
    assert all(torch.equal(before[name], value) for name, value in weights(model).items())
    assert not model.training
