"""Token embeddings: neighbours, principal components (Pearson 1901), t-SNE (van der Maaten & Hinton 2008)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from sklearn.manifold import TSNE

from heedful.architectures import Model
from heedful.architectures.model import EmbeddingTable
from heedful.errors import InputError
from heedful.nn.embedding import Segments
from heedful.text.tokenizer import Tokenizer
from heedful.wording import counted


class Plane(NamedTuple):
    """Projections of vectors onto their first two principal components, and the share of variance of each component."""

    places: Float[np.ndarray, "N 2"]
    shares: tuple[float, float]


def principal_components(vectors: Float[np.ndarray, "N D"]) -> Plane:
    """Project vectors onto their first two principal components, computed in float64.

    The sign of a component is arbitrary; here the entry of its direction with the largest absolute value is positive,
    so that the same vectors give the same plot everywhere.
    """
    if len(vectors) < 3 or vectors.shape[1] < 2:
        raise InputError(
            f"{counted(len(vectors), 'vectors')} of size {vectors.shape[1]} cannot span a plane; give more words"
        )
    centred = torch.from_numpy(vectors).double()
    centred = centred - centred.mean(0)
    # The right singular vectors of centred vectors are their principal components, and the squared singular values are
    # proportional to the variances.
    _, lengths, directions = torch.linalg.svd(centred, full_matrices=False)
    plane = directions[:2]
    signs = plane.gather(1, plane.abs().argmax(1, keepdim=True)).sign()
    coordinates = centred @ (plane * signs).T
    shares = lengths.square() / lengths.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
    return Plane(coordinates.numpy(), (shares[0].item(), shares[1].item()))


PERPLEXITY = 30.0  # roughly the number of neighbours that stay close; as in scikit-learn


def neighbour_map(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N 2"]:
    """Embed vectors in a plane by t-SNE, with PCA initialisation and a fixed seed, so that the map is reproducible.

    Neighbourhoods are meaningful; distances between groups that are far apart are not.
    """
    if len(vectors) < 5:
        raise InputError(f"t-SNE needs at least 5 vectors, not {len(vectors)}; give more words")
    # scikit-learn reads 3 x perplexity neighbours of each vector (van der Maaten 2014), but there are only N - 1.
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    return TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)


@dataclass(frozen=True)
class Neighbour:
    """Neighbour of a token in the embedding table, with the cosine similarity of the two rows."""

    token: int
    piece: str
    cosine: float


@dataclass(frozen=True)
class EmbeddingRow:
    """Embedding of one token: its row in the embedding table, and how the model uses it."""

    values: list[float]  # d_model numbers
    norm: float  # Euclidean
    scale: float  # factor by which the model multiplies the row, such as sqrt(d_model)
    segments: bool  # True if the model adds a segment embedding to the row


def table_with(model: Model, line: str, token: int) -> EmbeddingTable:
    """Return the embedding table of the source ("src") or target ("tgt") tokens; check that it has `token`."""
    table = model.embedding_of(line) if line in model.lines else None
    if table is None:
        raise InputError(f"the model does not embed tokens of {line!r}; its inputs are {' and '.join(model.lines)}")
    if not 0 <= token < len(table.weight):
        raise InputError(f"token {token}: the table has {counted(len(table.weight), 'tokens')}, counted from 0")
    return table


@torch.no_grad()
def row(model: Model, line: str, token: int) -> EmbeddingRow:
    """Return the embedding of a token from the source ("src") or target ("tgt") table of a model."""
    table = table_with(model, line, token)
    values = table.weight.detach()[token].float().cpu()
    segments = any(isinstance(module, Segments) for module in model.modules())
    scale = getattr(table, "scale", 1.0)  # torch's embeddings do not have one
    return EmbeddingRow(values.tolist(), float(values.norm()), scale, segments)


@torch.no_grad()
def neighbours(model: Model, tokenizer: Tokenizer, line: str, token: int, count: int = 10) -> list[Neighbour]:
    """Find the nearest neighbours of a token in the embedding table by cosine similarity, most similar first.

    The token itself is excluded; `line` is "src" or "tgt", a sequence that the model reads.
    """
    table = table_with(model, line, token)
    rows = F.normalize(table.weight[: len(tokenizer)].float(), dim=-1)
    cosines = rows @ rows[token]
    cosines[token] = -torch.inf  # not its own neighbour
    best, ids = (x.tolist() for x in cosines.topk(min(count, len(cosines) - 1)))
    return [Neighbour(*neighbour) for neighbour in zip(ids, tokenizer.pieces(ids), best, strict=True)]
