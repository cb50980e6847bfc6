"""When words were said: the alignment of tokens with audio, and tokens joined to words."""

from itertools import product

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.predictors.cross_attention import attention_layers, head_weights
from heedful.predictors.word_times import token_times, warping_path, words_of
from toy_speech import RATE, plain_tokenizer, random_transcriber, speech, stamped_tokenizer


def paths(rows: int, columns: int, row: int = 0, column: int = 0):
    """All paths from a cell to the last one by steps down, right or both."""
    if (row, column) == (rows - 1, columns - 1):
        yield [(row, column)]
    for down, right in ((1, 0), (0, 1), (1, 1)):
        if row + down < rows and column + right < columns:
            for rest in paths(rows, columns, row + down, column + right):
                yield [(row, column), *rest]


@pytest.mark.parametrize(("rows", "columns"), product((1, 2, 4), (1, 3, 5)))
def test_the_path_is_the_cheapest_of_all(rows, columns):
    cost = np.random.default_rng(rows * 7 + columns).normal(size=(rows, columns))
    cheapest = min(paths(rows, columns), key=lambda path: sum(cost[cell] for cell in path))
    assert list(zip(*(part.tolist() for part in warping_path(cost)), strict=True)) == cheapest


def test_a_token_begins_where_attention_moves_to_its_sound():
    begins = [0, 13, 37, 61, 80]
    weights = torch.full((3, len(begins), 101), 1e-3)
    for row, (begin, end) in enumerate(zip(begins, [*begins[1:], 90], strict=True)):
        weights[:2, row, begin:end] = 0.1
    weights[2] = torch.rand(len(begins), 101, generator=torch.Generator().manual_seed(3)) * 0.01
    assert np.abs(token_times(weights, 90, 0, 5) - begins).max() <= 3


@pytest.mark.parametrize("positions", [1, 2, 5])
def test_sound_of_a_few_positions_is_aligned(positions):
    times = token_times(torch.rand(2, 3, 7, generator=torch.Generator().manual_seed(1)), positions, 0, 3)
    assert (np.diff(times) >= 0).all()
    assert times.max() < positions


def reference_times(weights, positions, begin, end):
    """The alignment of Whisper's own code in loops: a scale for each head and position, a median of 7, a path."""
    heads, tokens, _ = weights.shape
    total = np.zeros((tokens, positions))
    for head in range(heads):
        share = np.array([[w / sum(row[:positions]) for w in row[:positions]] for row in weights[head].tolist()])
        scaled = np.array([(share[:, s] - share[:, s].mean()) / share[:, s].std() for s in range(positions)]).T
        for row in range(tokens):
            mirrored = [*scaled[row, 3:0:-1], *scaled[row], *scaled[row, -2:-5:-1]]
            total[row] += [sorted(mirrored[s : s + 7])[3] / heads for s in range(positions)]
    cost = -total[begin:end]
    cheapest = {(0, 0): (cost[0, 0], [0])}  # the cost until a cell, and the column in which each row begins
    for row, column in product(range(end - begin), range(positions)):
        ways = []
        for before in ((row - 1, column - 1), (row - 1, column), (row, column - 1)):
            if before in cheapest:
                price, begins = cheapest[before]
                ways.append((price + cost[row, column], begins if before[0] == row else [*begins, column]))
        if ways:
            cheapest[row, column] = min(ways)
    return cheapest[end - begin - 1, positions - 1][1]


@pytest.mark.parametrize(("begin", "end"), [(0, 11), (3, 10), (2, 11)])
@pytest.mark.parametrize("positions", [5, 17, 31])
def test_times_are_those_of_whispers_own_code(begin, end, positions):
    scores = torch.randn(3, 11, 31, generator=torch.Generator().manual_seed(positions + begin), dtype=torch.float64)
    weights = (3 * scores).softmax(-1)
    assert token_times(weights, positions, begin, end).tolist() == reference_times(weights, positions, begin, end)


def test_attention_to_padding_moves_no_word():
    weights = (3 * torch.randn(2, 9, 20, generator=torch.Generator().manual_seed(3))).softmax(-1)
    padding = torch.rand(2, 9, 11, generator=torch.Generator().manual_seed(4))
    padded = torch.cat([weights, padding], dim=2)
    padded /= padded.sum(-1, keepdim=True)
    assert token_times(padded, 20, 2, 8).tolist() == token_times(weights, 20, 2, 8).tolist()


def test_tokens_are_joined_to_words():
    spelled = [b" And", b" so", b",", b" Ng", b"uy", "ễ".encode()[:2], "ễ".encode()[2:], b"n", b".", b" "]
    times = [(float(place), place + 1.0) for place in range(len(spelled))]
    words = words_of(spelled, times, [-1.0 * place for place in range(len(spelled))])
    found = [(word.text, word.start, word.end, word.score) for word in words]
    assert found == [("And", 0, 1, 0), ("so,", 1, 3, -1.5), ("Nguyễn.", 3, 9, -5.5)]


def test_letters_of_scripts_without_spaces_are_words():
    spelled = [letter.encode() for letter in "你好，世界。"]
    words = words_of(spelled, [(0.0, 1.0)] * 6, [0.0] * 6)
    assert [word.text for word in words] == ["你", "好，", "世", "界。"]


def test_weights_are_those_of_attention_and_the_model_is_as_before(tmp_path):
    transcriber = random_transcriber(stamped_tokenizer(tmp_path / "whisper"))
    attentions = [x for name, x in transcriber.model.named_modules() if name.endswith("cross_attention")]
    kernels = [attention.attention_fn for attention in attentions]
    frames = torch.rand(1, 11, 10, generator=torch.Generator().manual_seed(2))
    mask = torch.ones(1, 11, dtype=torch.bool)
    target = torch.tensor([[2, 7, 9]])
    [weights] = head_weights(transcriber.model, frames, mask, target, torch.ones_like(target, dtype=torch.bool), [0, 3])
    assert weights.shape == (2, 3, 11)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    assert kernels
    assert [attention.attention_fn for attention in attentions] == kernels


@pytest.mark.parametrize("make", [stamped_tokenizer, lambda _: plain_tokenizer()], ids=["stamped", "plain"])
def test_words_are_within_their_recording_in_order_and_spell_the_text(make, tmp_path):
    transcriber = random_transcriber(make(tmp_path / "whisper"))
    samples = speech([("a", 19), ("m", 17), ("c", 30)])
    found = transcriber.transcribe(samples, word_timestamps=True)
    assert found.text == transcriber.transcribe(samples).text
    words = [word for segment in found.segments for word in segment.words]
    assert words
    assert "".join(word.text for word in words).replace(" ", "") == found.text.replace(" ", "")
    assert all(0 <= word.start <= word.end <= len(samples) / RATE + 1e-6 for word in words)
    assert not any(segment.words for segment in transcriber.transcribe(samples).segments)


def test_a_model_without_cross_attention_is_told_of():
    made = random_transcriber(plain_tokenizer())
    assert attention_layers(made.model)
    made.model.decoder.blocks = torch.nn.ModuleList()
    with pytest.raises(InputError, match="word_timestamps: the model has no cross-attention to align words with"):
        made.with_options(word_timestamps=True)
