"""Load trained models from a folder, a run, or by the name of a bundled model.

From checkpoint to line: `load_model` reads recipe, tokenizers and weights (`checkpoint.model_folder`);
`tasks.parts.sequence_to_sequence` builds the model (`architectures.transformer.model`) and its predictor
(`predictors.translator`), which encodes lines, batches them and restores their order; `search.beam` searches through
the model's `DecodingState`, or `search.greedy` for a beam of 1. `storage.manifest` verifies the files.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch

from heedful.architectures import SentenceEncoder
from heedful.architectures.backbone import BackboneModel
from heedful.architectures.model import load_weights
from heedful.checkpoint.lock import LOCK
from heedful.checkpoint.model_folder import build_fitting, read_description, read_weights
from heedful.checkpoint.run_folder import Checkpoints
from heedful.checkpoint.run_layout import CHECKPOINTS, checkpoint_folders, step_of
from heedful.config.load import FILE
from heedful.config.schema import DataConfig, Recipe
from heedful.errors import InputError
from heedful.machine.device import choose_device
from heedful.machine.process import own_random_numbers
from heedful.nn.int8 import INFERENCE_PRECISIONS
from heedful.predictors.predictor import AnyPredictor, Predictor
from heedful.predictors.retriever import Retriever
from heedful.progress import ProgressReporter
from heedful.storage.manifest import MANIFEST, read_manifest
from heedful.storage.paths import first_lost, near_paths
from heedful.tasks import find_task
from heedful.tasks.task import Evaluation, Results, Scores, Task
from heedful.text.tokenizer_pair import TokenizerPair

LOG = logging.getLogger(__name__)  # a warning is shown on standard error, unless the program says otherwise
BOX = Path(str(files("heedful"))) / "box"  # models that come with the package
PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")

U = TypeVar("U")


@dataclass(frozen=True)
class LoadedModel:
    """Loaded model with its recipe and tokenizers, ready for use."""

    recipe: Recipe
    model: Any  # a torch module in evaluation mode, as the task of the recipe builds it
    tokenizers: TokenizerPair
    path: Path  # the model folder or checkpoint that was read

    def use(self) -> AnyPredictor:
        """Create the predictor for the model's task, such as a translator, a generator or a classifier."""
        predictor = find_task(self.recipe.task).use(self.model, self.recipe, self.tokenizers)
        if isinstance(predictor, Predictor):
            predictor.recipe = self.recipe
        return predictor

    def use_as(self, kind: type[U]) -> U:
        """Create the predictor of the model and check that it is of one kind, such as a `Translator`.

        Any model of one text, such as a BERT or a GPT, can be used as a `Retriever`.
        """
        predictor = self.encoder() if kind is Retriever else self.use()
        if not isinstance(predictor, kind):
            command = find_task(self.recipe.task).command or "heedful.load"
            raise InputError(f'{self.path} is a model for the task "{self.recipe.task}"; use it with `{command}`')
        return predictor

    def encoder(self) -> AnyPredictor:
        """Create a retriever of any model of one text: its own, or else one of the mean of its hidden states.

        Of a model without hidden states of a text the result is its own predictor.
        """
        own, model = self.use(), self.model
        if isinstance(own, Retriever) or not (isinstance(model, BackboneModel) and model.embedding_of("src")):
            return own
        LOG.warning(
            '%s was trained for the task "%s", not for sentence vectors: they are means of its hidden states; a model '
            'that is trained on from it for task = "ranking" finds more',
            self.path,
            self.recipe.task,
        )
        tokenizer = self.tokenizers.source
        encoder = SentenceEncoder(self.recipe.model, len(tokenizer), model.backbone).eval()
        predictor = Retriever(encoder, tokenizer, self.recipe.data)
        predictor.recipe = self.recipe
        return predictor

    def test(self, data: DataConfig, report: Callable[[str], None], progress: ProgressReporter | None = None) -> Scores:
        """Score the model on the test set `data.test`, with the metrics of its task."""
        return self.results(data, report, progress).scores

    def results(
        self, data: DataConfig, report: Callable[[str], None], progress: ProgressReporter | None = None
    ) -> Results:
        """Score the model on `data.test` with all that a comparison of two models needs; arguments as for `test`."""
        run = Evaluation(warn=report, is_test=True)
        with self.testing(data, report) as task:
            return task.evaluate(self.model, replace(run, progress=progress) if progress else run) or Results({})

    @contextmanager
    def testing(self, data: DataConfig, report: Callable[[str], None]) -> Iterator[Task[Any]]:
        decode = replace(self.recipe.decode, max_extra=self.recipe.decode.extra)  # as if it had been measured
        recipe = replace(self.recipe, data=labels_learned(data, self.recipe.data), decode=decode)
        kind = find_task(recipe.task)
        with TemporaryDirectory() as folder, torch.no_grad():
            yield kind(kind.dataset.open_test(recipe, self.tokenizers, Path(folder), report))


def labels_learned(data: DataConfig, trained: DataConfig) -> DataConfig:
    """Replace what a training learns of its labels, the classes or the mean and scale, by that of another training."""
    return replace(data, labels=trained.labels, label_mean=trained.label_mean, label_scale=trained.label_scale)


def load_model(path: str | Path, device: str | torch.device = "cpu", precision: str = "float32") -> LoadedModel:
    """Load a trained model with its recipe and tokenizers, ready for use.

    Args:
        path: A model folder; a checkpoint; a run, of which the final model is loaded, else (with a warning that names
            it) the best checkpoint, else the latest; or the name of a model in the box.
        device: The device to compute on: "auto", "cpu", "cuda", or a device of torch.
        precision: "float32", or "int8" for quantised linear layers, see `heedful.load`.

    Raises:
        InputError: There is no such model, device or precision, the weights do not fit the recipe, or its task is a
            user's own class whose module was not imported: heedful imports no code that a model folder names.
        DamagedError: A file that is read differs from what was saved. Of a checkpoint only recipe, tokenizers and
            weights are read, not the optimizer.
    """
    if precision not in INFERENCE_PRECISIONS:
        raise InputError(f'no precision "{precision}"; there are {" and ".join(INFERENCE_PRECISIONS)}')
    place = choose_device(device)
    folder = find_model(path)
    if folder.parent == Path(path) / CHECKPOINTS:
        kind = "best" if Checkpoints(Path(path), keep_last=2).best else "latest"
        description = f"{kind} checkpoint, of update {step_of(folder)},"
        LOG.warning("%s has no final model yet; its %s is used", path, description)
    manifest = read_manifest(folder)
    if folder == Path(path) / "model":
        # a run that was trained on after its final model has later checkpoints
        end, newest = manifest.facts.get("update"), next(reversed(checkpoint_folders(Path(path))), None)
        if end is not None and newest is not None and step_of(newest) > end:
            LOG.warning(
                "%s has gone on after its final model, of update %s, which is used; for a later state name %s",
                Path(path),
                f"{end:,}",
                newest,
            )
    recipe, tokenizers = read_description(manifest)
    with own_random_numbers():  # a model is built with random initial weights
        model = build_fitting(manifest, recipe, tokenizers)
    load_weights(model, read_weights(manifest))
    return LoadedModel(recipe, INFERENCE_PRECISIONS[precision](model.to(place).eval()), tokenizers, folder)


def find_model(path: str | Path) -> Path:
    """Find a model's folder or checkpoint by path, or by the name of a model that comes with the package."""
    place = Path(path)
    if place.is_file():
        advice = f"{place} is a file, and a model is a folder; give a model folder, a checkpoint or a run"
        if place.suffix in PICKLED:
            advice = (
                f"{place} is a pickle, which can run code when it is read, so heedful reads none: give a model folder"
            )
        elif model_in(place.parent):
            advice = f"{place} is a file: give the model folder that holds it"
        raise InputError(advice)
    if not place.is_dir():
        return _in_box(str(place))  # without a slash at the end
    if model := model_in(place):
        return model
    runs = _runs_in(place)
    yours = f"give {' or '.join(runs)}" if runs else ""
    if str(path) in names_in_box():
        remedy = f"; for a model of your own {yours}" if runs else ""
        LOG.warning("the folder %s is no model: the model in the box of that name is used%s", path, remedy)
        return BOX / str(path)
    if other := _other_format(place):
        raise InputError(
            f"{place} is a model in the format of {other}, and no heedful model; convert it first: "
            f"heedful convert {place} --out NAME, and use NAME"
        )
    if (place / FILE).is_file():
        raise InputError(f"{place} is a recipe, not a model; train it: heedful train {place} --out RUN, and give RUN")
    if (place / LOCK).is_file():
        raise InputError(
            f"{place} is a run that has no checkpoint and no model yet; train it on: heedful train RECIPE --out {place}"
        )
    advice = yours or "give a model folder, a checkpoint or a run"
    raise InputError(
        f"{place} holds no heedful model: neither {MANIFEST}, nor model/{MANIFEST}, nor checkpoints; {advice}"
    )


def model_in(folder: Path) -> Path | None:
    """Find the model folder; in a run the final model, else the best checkpoint, else the latest; None without any."""
    for place in (folder, folder / "model"):
        if (place / MANIFEST).is_file():
            return place
    checkpoints = Checkpoints(folder, keep_last=2)
    if checkpoints.best:
        return checkpoints.path(checkpoints.best.step)
    steps = checkpoints.steps()
    return checkpoints.path(steps[-1]) if steps else None


def _other_format(folder: Path) -> str | None:
    """Name the toolkit whose model a folder holds, by the names of its files; None for an unknown one."""
    names = {path.name for path in folder.iterdir()}
    if "model.bin" in names and names & {"config.json", "vocabulary.txt", "vocabulary.json", "shared_vocabulary.json"}:
        return "CTranslate2"
    weights = any(name.endswith(".safetensors") or name.startswith("pytorch_model") for name in names)
    return "Hugging Face" if "config.json" in names and weights else None


def _runs_in(folder: Path) -> list[str]:
    return [str(child) for child in sorted(folder.iterdir()) if child.is_dir() and model_in(child)]


def names_in_box() -> list[str]:
    return sorted(path.parent.name for path in BOX.glob(f"*/{MANIFEST}"))


def _in_box(name: str) -> Path:
    names = names_in_box()
    if name in names:
        return BOX / name
    near = [*near_paths(Path(name), lambda place: place.is_dir() and model_in(place)), *get_close_matches(name, names)]
    if near:
        raise InputError(f'no model "{name}": there is no such folder; did you mean {" or ".join(map(str, near))}?')
    beside = Path(name).parent
    if beside.name and beside.is_dir():
        there = f"{beside} holds {', '.join(_runs_in(beside)) or 'no run or model yet'}"
        raise InputError(f'no model "{name}": there is no such folder, and {there}; `heedful train` makes a run')
    missing = first_lost(Path(name))
    nor = f", nor a folder {missing}" if missing != Path(name) else ""
    box = f"the box holds {', '.join(names) or 'nothing'}"
    raise InputError(f'no model "{name}": there is no such folder{nor}, and {box}')
