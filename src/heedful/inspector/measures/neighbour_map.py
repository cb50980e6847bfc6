"""t-SNE: a map of vectors on which near ones stay near (van der Maaten & Hinton 2008).

N vectors of size D. Needs scikit-learn, which comes with the extra `tsne`.
"""

import numpy as np
from jaxtyping import Float
from sklearn.manifold import TSNE

from heedful.errors import InputError

PERPLEXITY = 30.0  # about the number of neighbours that are kept near; as in scikit-learn


def neighbour_map(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N 2"]:
    """Place vectors in a plane by t-SNE, beginning from their principal components, so that it is always the same map.

    Distances between groups that are far apart mean little; who is whose neighbour does.

    Raises:
        InputError: there are fewer than five vectors.
    """
    if len(vectors) < 5:
        raise InputError(f"t-SNE has nothing to arrange among {len(vectors)} vectors; give five words or more")
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    return TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)
