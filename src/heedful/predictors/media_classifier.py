"""Classification of images, audio and videos: predicts the class of each file."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import torch

from heedful.architectures import SequenceClassifier
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.predictors.classifier import Classified, Decision
from heedful.predictors.media_reader import Input, MediaReader
from heedful.predictors.outputs import Answer
from heedful.predictors.predictor import ModelInputs, Predictor


@dataclass(frozen=True)
class ClassifiedMedia(Classified):
    """Class predicted for a file, with the probability of each class.

    Attributes:
        windows: Number of windows in which the file was read: more than 1 for audio that is too long for the model.
            Their probabilities are averaged.
        silent: True for silent audio, for which the model still predicts a class.
    """

    windows: int = 1
    silent: bool = False


class MediaClassifier(Predictor[SequenceClassifier, ClassifiedMedia]):
    """Classifier of images, audio or videos: a model trained to predict one of the classes in `data.labels`.

    Attributes:
        decision: How a class is chosen, such as by a threshold.
        inputs: Reads an input with `reader`, as a list of parts.
    """

    reads_files = True

    def __init__(self, model: SequenceClassifier, recipe: Recipe) -> None:
        super().__init__(model)
        self.labels = recipe.data.labels
        self.decision = Decision()
        self.reader = MediaReader(model, recipe)
        self.inputs = replace(self.reader.inputs, read=self.reader.parts)

    def decide_by(self, decision: Decision) -> None:
        """Set the rule by which classes are chosen, such as a threshold."""
        self.decision = decision

    @overload
    def predict(self, files: Input) -> ClassifiedMedia: ...
    @overload
    def predict(self, files: Iterable[Input]) -> list[ClassifiedMedia]: ...
    def predict(self, files: object) -> ClassifiedMedia | list[ClassifiedMedia]:
        """Predict the class of a file, or the classes of several files, in order.

        Args:
            files: A file name, its bytes, an open file, a Pillow image, or an array of pixels (H W C, 8 bits), of
                frames (T H W C, 8 bits) or of samples (N) at the recipe's rate; or an iterable of these.
                Audio that is longer than `audio.max_seconds` is read in parts, whose probabilities are averaged.
        """
        return self.inputs.one_or_all(self.answers, files)

    __call__ = predict

    def predict_files(self, files: Iterable[Input]) -> Iterator[ClassifiedMedia]:
        """Yield the class of each file, in order; memory does not grow with their number."""
        return self.answers(self.inputs.each(files))

    def model_inputs(self, value: object, second: str | None) -> ModelInputs:
        if second is not None:
            raise InputError("a classifier generates no text; leave the target out")
        return self.reader.model_inputs(value)

    def ranked_options(self, value: object, second: str | None) -> list[Answer]:
        del second  # `model_inputs` rejects one
        [answer] = self.answers([[self.reader.decoded_file(value)]])
        return [Answer(answer.options())]

    def answers(self, decoded: Iterable[list[np.ndarray]]) -> Iterator[ClassifiedMedia]:
        """Predict the class of each decoded input; the probabilities of its parts are averaged."""
        facts: deque[tuple[int, bool]] = deque()  # the number of parts of each input, and whether all are silent

        # The parts of all inputs share batches; `facts` says how many results belong to each input.
        def parts() -> Iterator[np.ndarray]:
            for one in decoded:
                facts.append((len(one), all(map(self.reader.modality.is_silent, one))))
                yield from one

        outputs = self.reader.run(parts(), lambda *batch: self.model(*batch).float().cpu())
        for logits in outputs:
            count, silent = facts.popleft()
            rest = [next(outputs) for _ in range(count - 1)]
            # (parts, C) -> (C,)
            mean = torch.stack([logits, *rest]).softmax(-1).mean(0)
            answer = self.decision.classify(dict(zip(self.labels, mean.tolist(), strict=True)))
            yield ClassifiedMedia(answer.label, answer.probabilities, windows=count, silent=silent)
