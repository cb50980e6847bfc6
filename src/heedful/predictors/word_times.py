"""Times of the words in a transcript, from Whisper's cross-attention and dynamic time warping.

Some heads of Whisper's cross-attention attend to the audio of the token that is generated next. They are used as in the
code of Radford et al. (2022). Dynamic time warping is due to Sakoe & Chiba (1978).

T tokens, N of them with times, S positions of the encoder, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from heedful.config.schema import Recipe
from heedful.predictors.cross_attention import upper_heads

MEDIAN_WIDTH = 7  # in encoder positions


@dataclass(frozen=True)
class Word:
    """Word of a transcript with its punctuation, and its times in seconds from the beginning of the audio."""

    start: float
    end: float
    text: str
    score: float  # mean log P of its tokens


def alignment_heads(recipe: Recipe) -> Sequence[int]:
    """Return the numbers of the heads that follow the speech; by default, all in the upper half of the decoder."""
    model = recipe.model
    return recipe.transcribe.alignment_heads or upper_heads([model.heads] * model.decoder_layers)


def token_times(weights: Float[Tensor, "H T S"], positions: int, begin: int, end: int) -> Float64[np.ndarray, " N"]:
    """Align tokens with encoder positions: return, for each of N tokens, where the audio of the next token begins.

    Args:
        weights: The attention weights of heads, from each token to the audio of the next one.
        positions: The number of positions that contain audio, not padding.
        begin: The index of the first of the N tokens among the T.
        end: The index after the last of the N tokens.
    """
    # Attention to padding does not count.
    shares = weights[:, :, : max(1, positions)].double().numpy()
    total = shares.sum(axis=2, keepdims=True)
    shares = shares / np.where(total > 0, total, 1.0)

    # Each head and position is scaled over all T tokens, including those of the prompt and <eos>.
    spread = shares.std(axis=1, keepdims=True)
    scaled = (shares - shares.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)

    # The median along the audio removes single outliers, as in Whisper's code.
    side = MEDIAN_WIDTH // 2
    if scaled.shape[2] > side:
        mirrored = np.pad(scaled, ((0, 0), (0, 0), (side, side)), mode="reflect")
        scaled = np.median(sliding_window_view(mirrored, MEDIAN_WIDTH, axis=2), axis=-1)
    # (H, T, S) -> (N, S). The path with the most attention is the cheapest one if the cost is negative attention.
    rows, columns = warping_path(-scaled.mean(axis=0)[begin:end])
    # `argmax` finds the first cell of a row, where the audio of the next token begins.
    return np.array([columns[np.argmax(rows == row)] for row in range(end - begin)], dtype=np.float64)


def warping_path(cost: Float64[np.ndarray, "T S"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the cheapest path from the first to the last cell.

    A step goes one cell down, one to the right, or both.
    """
    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    for row in range(rows):
        previous, current, costs = total[row].tolist(), total[row + 1].tolist(), cost[row].tolist()
        for column in range(columns):
            current[column + 1] = costs[column] + min(previous[column], previous[column + 1], current[column])
        total[row + 1] = current
    # Trace the path back from the end, each time to the cell from which the sum came.
    row, column = rows, columns
    path = []
    while row > 0 and column > 0:
        path.append((row - 1, column - 1))
        steps = ((row - 1, column - 1), (row - 1, column), (row, column - 1))
        row, column = min(steps, key=lambda cell: total[cell])
    cells = np.array(path[::-1])
    return cells[:, 0], cells[:, 1]


def words_of(token_bytes: Sequence[bytes], times: Sequence[tuple[float, float]], scores: Sequence[float]) -> list[Word]:
    """Join tokens into words: each word begins with a space, or with a letter of a script without spaces.

    `token_bytes` has the bytes of each token, `times` its beginning and end in seconds, and `scores` its log P.
    """
    groups: list[list[int]] = []
    text = b""
    for index, part in enumerate(token_bytes):
        # A token may be only some of the bytes of a character, and no word begins inside a character.
        is_whole = text.decode(errors="replace").encode() == text
        first = part.decode(errors="ignore")[:1]
        unspaced = first.isalpha() and ("\u0e00" <= first <= "\u0eff" or "\u3040" <= first <= "\u9fff")  # Thai, Chinese
        if not groups or (is_whole and (unspaced or part.startswith(b" "))):
            groups.append([])
            text = b""
        groups[-1].append(index)
        text += part

    words = []
    for group in groups:
        word = b"".join(token_bytes[index] for index in group).decode(errors="replace").strip()
        if word:
            score = sum(scores[index] for index in group) / len(group)
            words.append(Word(times[group[0]][0], times[group[-1]][1], word, score))
    return words
