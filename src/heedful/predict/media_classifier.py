"""Classification of pictures, sounds and videos: predicts the class of each file."""

from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np

from heedful.config.schema import Recipe
from heedful.decode.media_reader import Input, MediaReader
from heedful.decode.predictor import Predictor
from heedful.models import SequenceClassifier
from heedful.predict.decision import Classified, Decision


class MediaClassifier(Predictor[SequenceClassifier, Classified]):
    """Classifier of pictures, sounds or videos: a model trained to predict one of the classes in `data.labels`.

    Attributes:
        decision: how a class is chosen, such as by a threshold.
    """

    def __init__(self, model: SequenceClassifier, recipe: Recipe) -> None:
        super().__init__(model)
        self.labels = recipe.data.labels
        self.decide_by(Decision())
        self.reader = MediaReader(model, recipe)

    def decide_by(self, decision: Decision) -> None:
        """Choose classes in another way from now on, such as by a threshold."""
        self.decision = decision

    @overload
    def predict(self, files: Input) -> Classified: ...
    @overload
    def predict(self, files: Iterable[Input]) -> list[Classified]: ...
    def predict(self, files: object) -> Classified | list[Classified]:
        """Predict the class of a file, or the classes of several files in their order.

        Args:
            files: the name of a file, its bytes, or an array of pixels (H W C, 8 bits), of frames (T H W C, 8 bits) or
                of samples (N) at the rate of the recipe; or an iterable of these.

        Raises:
            InputError: an input is none of these, or cannot be read.
        """
        return self.reader.inputs.one_or_all(self.answers, files)

    __call__ = predict

    def predict_files(self, files: Iterable[Input]) -> Iterator[Classified]:
        """Predict the class of each of any number of files, in their order and in bounded memory.

        Raises:
            InputError: under the same conditions as `predict`.
        """
        return self.answers(self.reader.inputs.each(files))

    def answers(self, decoded: Iterable[np.ndarray]) -> Iterator[Classified]:
        """Predict the class of each decoded input."""
        for logits in self.reader.run(decoded, lambda *batch: self.model(*batch).float().cpu()):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield self.decision.classify(shares)
