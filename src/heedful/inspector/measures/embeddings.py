"""What a model knows of a token before it has read anything: its row in the embedding table, and the rows beside it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from heedful.errors import InputError
from heedful.models import Model
from heedful.nn.embedding import Embedding, Segments
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Neighbour:
    """Another token, and how alike its row is: the cosine of the angle between the two."""

    token: int
    piece: str
    cosine: float


@dataclass(frozen=True)
class EmbeddingRow:
    """What is looked up for a token.

    Attributes:
        values: its row, as it was trained: d_model numbers.
        norm: the length of that.
        scale: by what it is multiplied as it enters the model.
        segments: whether a vector that tells the first text of a pair from the second is added then.
    """

    values: list[float]
    norm: float
    scale: float
    segments: bool


def embedding(model: Model, line: str) -> Embedding:
    """The table that the tokens of a line are looked up in.

    Args:
        model: any of heedful's models.
        line: "src" or "tgt", one that the model reads.

    Raises:
        InputError: the model has no such line.
    """
    lines = [stack.sequence for stack in model.named_stacks()]
    table = model.embedding_of(line) if line in lines else None
    if not isinstance(table, Embedding):
        raise InputError(f"the model reads no {line}; it reads {' and '.join(lines) or 'what only it knows'}")
    return table


@torch.no_grad()
def row(model: Model, line: str, token: int) -> EmbeddingRow:
    """What the table of a line holds for a token.

    Raises:
        InputError: there is no such line or token.
    """
    table = embedding(model, line)
    check(table, token)
    values = table.weight.detach()[token].float().cpu()
    segments = any(isinstance(module, Segments) for module in model.modules())
    return EmbeddingRow(values.tolist(), float(values.norm()), table.scale, segments)


@torch.no_grad()
def neighbours(model: Model, tokenizer: Tokenizer, line: str, token: int, count: int = 10) -> list[Neighbour]:
    """The tokens whose rows point in the direction most like that of a token, most alike first, without itself.

    Args:
        model: any of heedful's models.
        tokenizer: that of the line.
        line: "src" or "tgt", one that the model reads.
        token: an id.
        count: how many; fewer, if there are no more.

    Raises:
        InputError: there is no such line or token.
    """
    table = embedding(model, line)
    check(table, token)
    rows = F.normalize(table.weight[: len(tokenizer)].float(), dim=-1)
    cosines = rows @ rows[token]
    cosines[token] = -torch.inf
    best, ids = (x.tolist() for x in cosines.topk(min(count, len(cosines) - 1)))
    return [Neighbour(*found) for found in zip(ids, tokenizer.pieces(ids), best, strict=True)]


def check(table: Embedding, token: int) -> None:
    """Raise an InputError if the table has no such row."""
    if not 0 <= token < len(table.weight):
        raise InputError(f"token {token}: the table has {len(table.weight)}, counted from 0")
