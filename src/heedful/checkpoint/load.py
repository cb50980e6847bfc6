"""Load trained models from a model folder or a run, or by the name of a bundled model or one on the Hub.

The path from a checkpoint to a translated line: `load_model` reads recipe, tokenizers and weights
(`checkpoint.model_folder`); `tasks.parts.sequence_to_sequence` builds the model (`architectures.transformer.model`) and
its predictor (`predictors.translator`), which encodes lines; `search.source_to_target` batches them and restores their
order; `search.beam` searches with the model's `DecodingState`. `storage.complete_folder` verifies the files.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch

from heedful.architectures import SentenceEncoder
from heedful.architectures.backbone import BackboneModel
from heedful.architectures.model import load_weights
from heedful.checkpoint.description import read_description
from heedful.checkpoint.find import BUNDLED, find_model, warn_of_choice
from heedful.checkpoint.hub import name_of_download
from heedful.checkpoint.model_folder import build_checked, read_merged
from heedful.config.schema import DataConfig, Recipe
from heedful.errors import InputError
from heedful.machine.device import choose_device
from heedful.machine.process import preserve_rng_state
from heedful.nn.lora import Adapter
from heedful.predictors.predictor import AnyPredictor, Predictor
from heedful.predictors.retriever import Retriever, warn_of_mean_vectors
from heedful.progress import ProgressReporter
from heedful.storage.complete_folder import read_manifest
from heedful.tasks import find_task
from heedful.tasks.specs import kind_of_model
from heedful.tasks.task import Evaluation, Results, Scores, Task
from heedful.text.tokenizer_pair import TokenizerPair

U = TypeVar("U")


@dataclass(frozen=True)
class LoadedModel:
    """Loaded model with its recipe and tokenizers, ready for use."""

    recipe: Recipe
    model: Any  # a torch module in evaluation mode, built by the recipe's task
    tokenizers: TokenizerPair
    path: Path  # the model folder or checkpoint that was loaded
    adapter: Adapter | None = None  # LoRA updates, already merged into the weights; None if LoRA was not used

    @property
    def name(self) -> str:
        """The name of a bundled model or of one on the Hub, or the path of any other model, for messages."""
        return self.path.name if self.path.parent == BUNDLED else name_of_download(self.path) or str(self.path)

    def use(self) -> AnyPredictor:
        """Create the predictor for the model's task, such as a translator, a generator or a classifier."""
        predictor = find_task(self.recipe.task).use(self.model, self.recipe, self.tokenizers)
        if isinstance(predictor, Predictor):
            predictor.recipe = self.recipe
        return predictor

    def use_as(self, kind: type[U]) -> U:
        """Create the model's predictor and check its class, such as `Translator`.

        Any model that reads one text, such as a BERT or a GPT, can be used as a `Retriever`.
        """
        predictor = self.encoder() if kind is Retriever else self.use()
        if not isinstance(predictor, kind):
            command = find_task(self.recipe.task).spec.command or "heedful.load"
            raise InputError(f"{self.name} is {kind_of_model(self.recipe.task)}; use it with `{command}`")
        return predictor

    def encoder(self) -> AnyPredictor:
        """Return the model's predictor if it is a retriever, or else a retriever whose vectors are mean hidden states.

        If the model has no hidden states of text, return its predictor.
        """
        predictor, model = self.use(), self.model
        if isinstance(predictor, Retriever) or not (isinstance(model, BackboneModel) and model.embedding_of("src")):
            return predictor
        warn_of_mean_vectors(self.path, self.recipe.task)
        tokenizer = self.tokenizers.source
        encoder = SentenceEncoder(self.recipe.model, len(tokenizer), model.backbone).eval()
        retriever = Retriever(encoder, tokenizer, self.recipe.data)
        retriever.recipe = self.recipe
        return retriever

    def test(self, data: DataConfig, report: Callable[[str], None], progress: ProgressReporter | None = None) -> Scores:
        """Score the model on the test set `data.test`, with the metrics of its task."""
        return self.results(data, report, progress).scores

    def results(
        self, data: DataConfig, report: Callable[[str], None], progress: ProgressReporter | None = None
    ) -> Results:
        """Score the model on `data.test`; the results include each example's scores, to compare two models."""
        run = Evaluation(warn=report, is_test=True)
        with self.testing(data, report) as task:
            return task.evaluate(self.model, replace(run, progress=progress) if progress else run) or Results({})

    @contextmanager
    def testing(self, data: DataConfig, report: Callable[[str], None]) -> Iterator[Task[Any]]:
        # Set `max_extra`, so that it is not derived from the lengths of the test data.
        decode = replace(self.recipe.decode, max_extra=self.recipe.decode.extra)
        recipe = replace(self.recipe, data=labels_learned(data, self.recipe.data), decode=decode)
        task = find_task(recipe.task)
        with TemporaryDirectory() as folder, torch.no_grad():
            yield task(task.dataset.open_test(recipe, self.tokenizers, Path(folder), report))


def labels_learned(data: DataConfig, trained: DataConfig) -> DataConfig:
    """Return `data` with the classes, or the labels' mean and scale, with which a model was trained."""
    return replace(data, labels=trained.labels, label_mean=trained.label_mean, label_scale=trained.label_scale)


def load_model(path: str | Path, device: str | torch.device = "cpu") -> LoadedModel:
    """Load a trained model with its recipe and tokenizers, ready for use.

    Args:
        path: A model folder, a checkpoint, a run, or the name of a bundled model or one on the Hub. From a run, the
            final model is loaded; without one, the best checkpoint or else the latest, with a warning that names it.
        device: The device to run on: "auto", "cpu", "cuda", or a torch device.

    Raises:
        InputError: The model or device does not exist, the weights do not fit the recipe, or the task is a
            user's class whose module was not imported: heedful does not import code that a model folder names.
        DamagedError: The recipe, tokenizers or weights differ from what was saved.
    """
    torch_device = choose_device(device)
    folder = find_model(path)
    manifest = read_manifest(folder)
    warn_of_choice(Path(path), manifest)
    recipe, tokenizers = read_description(manifest)
    with preserve_rng_state():  # building a model samples its initial weights
        model = build_checked(manifest, recipe, tokenizers)
    weights, adapter = read_merged(manifest, recipe)
    load_weights(model, weights)
    # The LoRA updates are merged, so the recipe describes a model without them, as `build_checked` builds it.
    recipe = replace(recipe, train=replace(recipe.train, lora=None))
    return LoadedModel(recipe, model.to(torch_device).eval(), tokenizers, folder, adapter)
