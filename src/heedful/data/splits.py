"""The parts of a recipe's data: training and validation data, or a test set alone, which stands for both."""

from collections.abc import Sequence

from heedful.config.schema import CorpusConfig, DataConfig


def is_test_set(data: DataConfig) -> bool:
    """True if a recipe's data are a test set alone, as when `heedful.checkpoint.load.LoadedModel` tests a model."""
    return data.test is not None and all(corpus is data.test for corpus in (*data.train, data.valid))


def text_parts(data: DataConfig) -> dict[str, Sequence[CorpusConfig]]:
    """Return the corpora of a recipe by part: "train" and, if there is one, "valid"; or "test" for a test set alone."""
    if is_test_set(data):
        return {"test": data.train}
    return {"train": data.train, **({"valid": [data.valid]} if data.valid else {})}
