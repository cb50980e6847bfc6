"""Kim's text CNN against torch's convolutions, a text at a time; and its word vectors in four variants."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from children import ids, ones, padded
from heedful.architectures import TextClassifier, TokenClassifier
from heedful.architectures.parameters import count_parameters
from heedful.architectures.text_cnn.settings import TextCNNConfig

CONFIG = TextCNNConfig(d_model=13, kernel_sizes=(2, 3, 5), filters=7)


@pytest.mark.parametrize("multichannel", [False, True])
def test_logits_are_those_of_convolutions_relu_and_a_maximum_over_the_text(multichannel):
    model = TextClassifier(replace(CONFIG, multichannel=multichannel), 23, 3).eval()
    rows = [ids(1, n)[0] for n in (5, 11, 1, 2)]
    names = dict(model.named_parameters())
    for row, logits in zip(rows, model(*padded(rows, "right")), strict=True):
        tables = [names[f"backbone.embedding.{name}"] for name in ("weight", "static")[: 1 + multichannel]]
        pooled = []
        for number, size in enumerate(CONFIG.kernel_sizes):
            weight = names[f"backbone.stack.convolutions.{number}.weight"].view(7, size, 13).transpose(1, 2)
            bias = names[f"backbone.stack.convolutions.{number}.bias"]
            found = 0
            for table in tables:  # the same filters on each channel; the bias once
                wide = F.pad(table[row].T, ((size - 1) // 2, size // 2))
                found = found + F.conv1d(wide[None], weight)[0]
            pooled.append((found + bias[:, None]).relu().amax(1))
        torch.testing.assert_close(logits, model.output(torch.cat(pooled)))


def test_the_default_is_the_model_of_the_paper():
    model = TextClassifier(TextCNNConfig(), 101, 2)
    assert model.output.in_features == 300
    assert count_parameters(model).weights == {
        "embeddings": 101 * 300,
        "convolutions": 300 * 100 * (3 + 4 + 5),
        "output": 600,
    }
    assert TextCNNConfig().shape() == "kernel sizes 3, 4, 5, 100 filters of each, d_model 300"


def test_one_channel_is_trained_and_the_other_is_not():
    model, tokens = TextClassifier(replace(CONFIG, multichannel=True), 23, 3), ids(3, 7)
    model(tokens, ones(tokens)).sum().backward()
    names = dict(model.named_parameters())
    assert [names[f"backbone.embedding.{name}"].requires_grad for name in ("weight", "static")] == [True, False]
    assert torch.equal(names["backbone.embedding.weight"], names["backbone.embedding.static"])
    assert {"backbone.embedding.weight", "backbone.embedding.static"} <= model.token_rows().keys()


def test_each_token_has_the_filters_around_it():
    model, tokens = TokenClassifier(CONFIG, 23, 3).eval(), ids(1, 17)
    want, other = model(tokens, ones(tokens), tokens), tokens.clone()
    other[0, 8] = (tokens[0, 8] - 4) % 18 + 5
    changed = (model(other, ones(other), other) - want)[0].abs().amax(1) > 1e-6
    assert changed.nonzero()[:, 0].tolist() == [6, 7, 8, 9, 10]
