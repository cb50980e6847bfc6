"""Classification of pictures, sounds and videos: predicts the class of each file."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import torch

from heedful.config.schema import Recipe
from heedful.decode.inputs import InputKind
from heedful.decode.media_reader import Input, MediaReader
from heedful.decode.predictor import Predictor
from heedful.models import SequenceClassifier
from heedful.predict.decision import Classified, Decision


@dataclass(frozen=True)
class ClassifiedMedia(Classified):
    """Class predicted for a file, with the probability of each class.

    Attributes:
        windows: number of parts of a sound that is longer than the model reads; their probabilities are averaged.
    """

    windows: int = 1


class MediaClassifier(Predictor[SequenceClassifier, ClassifiedMedia]):
    """Classifier of pictures, sounds or videos: a model trained to predict one of the classes in `data.labels`."""

    def __init__(self, model: SequenceClassifier, recipe: Recipe) -> None:
        super().__init__(model)
        self.labels = recipe.data.labels
        self.decision = Decision()
        self.reader = MediaReader(model, recipe)

    @overload
    def predict(self, files: Input) -> ClassifiedMedia: ...
    @overload
    def predict(self, files: Iterable[Input]) -> list[ClassifiedMedia]: ...
    def predict(self, files: object) -> ClassifiedMedia | list[ClassifiedMedia]:
        """Predict the class of a file, or the classes of several files in their order.

        Args:
            files: the name of a file, its bytes, an open file, an image of Pillow, or an array of pixels (H W C, 8
                bits), of frames (T H W C, 8 bits) or of samples (N) at the rate of the recipe; or an iterable of these.
                A sound that is longer than `audio.max_seconds` is read in parts, whose probabilities are averaged.

        Raises:
            InputError: an input is none of these, or cannot be read.
        """
        return self.inputs.one_or_all(self.answers, files)

    __call__ = predict

    def predict_files(self, files: Iterable[Input]) -> Iterator[ClassifiedMedia]:
        """Predict the class of each of any number of files, in their order and in bounded memory.

        Raises:
            InputError: under the same conditions as `predict`.
        """
        return self.answers(self.inputs.each(files))

    @property
    def inputs(self) -> InputKind[list[np.ndarray]]:
        """The kind of input of a classifier: what a `MediaReader` reads, in parts."""
        return replace(self.reader.inputs, read=self.reader.parts)

    def answers(self, decoded: Iterable[list[np.ndarray]]) -> Iterator[ClassifiedMedia]:
        """Predict the class of each decoded input; the probabilities of its parts are averaged."""
        counts: deque[int] = deque()

        def parts() -> Iterator[np.ndarray]:
            for one in decoded:
                counts.append(len(one))
                yield from one

        each = self.reader.run(parts(), lambda *batch: self.model(*batch).float().cpu())
        for logits in each:
            count = counts.popleft()
            rest = [next(each) for _ in range(count - 1)]
            mean = torch.stack([logits, *rest]).softmax(-1).mean(0)
            answer = self.decision.classify(dict(zip(self.labels, mean.tolist(), strict=True)))
            yield ClassifiedMedia(answer.label, answer.probabilities, windows=count)
