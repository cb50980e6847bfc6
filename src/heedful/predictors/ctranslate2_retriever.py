"""A retriever whose model runs on CTranslate2; pooling and normalisation use NumPy.

B texts, S tokens, D hidden size.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from heedful.config.schema import Recipe
from heedful.machine.cores import usable_cores
from heedful.predictors.ctranslate2_model import CTranslate2Model, CTranslate2Predictor, Rows, as_tokens
from heedful.predictors.predictor import Done
from heedful.predictors.retriever import Retriever, Vectors, warn_of_mean_vectors
from heedful.predictors.text_predictor import BatchedModel
from heedful.registry import TASKS
from heedful.text.sequences import batches, pad, segments
from heedful.text.tokenizer_pair import TokenizerPair

BATCH_TOKENS = 2048  # processed by one core at a time

# Like `POOLINGS` in `heedful.architectures.heads`, for rows padded on the right: each maps hidden states (B S D) and a
# padding mask (B S 1) to vectors (B D).
POOLINGS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "first": lambda states, _: states[:, 0],
    "mean": lambda states, real: (states * real).sum(1) / real.sum(1),
    "max": lambda states, real: np.where(real, states, -np.inf).max(1),
    "last": lambda states, real: states[np.arange(len(states)), real.sum(1)[:, 0] - 1],
    "sum": lambda states, real: (states * real).sum(1),
}


class Encoder(CTranslate2Model):
    """Text encoder with pooling of its hidden states."""

    engine = "Encoder"

    def vectors(self, rows: Rows) -> Vectors:
        """Compute the vector of each row in a batch, scaled to length 1."""
        ids, padding_mask = pad(rows)
        types = segments(ids).tolist() if self.recipe.model.segments else None
        with self.computing():
            output = self.engine_for(rows).forward_batch(as_tokens(rows), token_type_ids=types)
        states = np.array(output.last_hidden_state)
        vectors = POOLINGS[self.recipe.model.pooling or "mean"](states, padding_mask[:, :, None])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # The same as `torch.nn.functional.normalize`, whose smallest divisor is 1e-12.
        return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


class BatchedEncoder(BatchedModel):
    """Text encoder that runs on several batches in parallel."""

    def read_rows(self, rows: Sequence[list[int]], apply: Any, done: Done = lambda _: None) -> list[Any]:
        del apply
        model: Any = self.model
        outputs: list[Any] = [None] * len(rows)
        index_batches = list(batches(rows, BATCH_TOKENS))
        # CTranslate2 releases Python's global interpreter lock while it runs, so that threads can use several cores.
        with ThreadPoolExecutor(usable_cores()) as executor:
            results = executor.map(lambda batch: model.vectors([rows[i] for i in batch]), index_batches)
            for batch, vectors in zip(index_batches, results, strict=True):
                for index, vector in zip(batch, vectors, strict=True):
                    outputs[index] = vector
                done(len(batch))
        return outputs


class CTranslate2Retriever(CTranslate2Predictor, Retriever):
    """Retriever whose model runs on CTranslate2; `heedful.load(..., engine="ctranslate2")` returns one."""

    model_class = Encoder
    reference_class = Retriever

    def __init__(self, model: Encoder, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> None:
        del options  # a retriever has no settings
        self.model: Any = model  # instead of a torch module
        self.recipe = model.recipe
        self.tokenizer = tokenizers.source
        self.reader = BatchedEncoder(self.model, self.tokenizer, model.recipe.data.max_length)
        self.width = model.recipe.model.hidden_size
        warn_of_mean_vectors(model.origin, model.recipe.task)

    @classmethod
    def task_misfits(cls, recipe: Recipe) -> list[str]:
        """List the problems with a model's task, input and family; any bundled text encoder can compute vectors."""
        if TASKS.is_custom(recipe.task):
            return [f'task = "{recipe.task}": must be a bundled task']
        if recipe.data.modality != "text" or recipe.model.family != "encoder":
            return [f'model.family = "{recipe.model.family}": must be "encoder", and the input text']
        return []

    @staticmethod
    def misfits(recipe: Recipe, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> list[str]:
        del recipe, tokenizers, options
        return []
