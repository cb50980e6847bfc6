"""Loading of predictors that run on CTranslate2. A model is converted once, and later loads do not import torch.

The converted model is in a subfolder of `.engines`, in the model folder or, if that is not writable, in the user's
cache. The subfolder's name contains a checksum of the model's manifest, so a changed model is converted again.
"""

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, TypeVar

from heedful.checkpoint.description import INT8, read_description
from heedful.checkpoint.find import find_model, warn_of_choice
from heedful.config.schema import Recipe
from heedful.errors import InputError, RunError
from heedful.predictors.ctranslate2_model import COMPUTE_TYPES, POSITIONS, CTranslate2Predictor, import_ctranslate2
from heedful.registry import ENGINE_PREDICTORS
from heedful.storage.atomic import FolderWriter, named_write_errors
from heedful.storage.complete_folder import ENGINES, MANIFEST, Manifest, is_intact, read_manifest
from heedful.storage.disk import DISK
from heedful.text.pipeline import BOS, PAD, UNK

LOG = logging.getLogger(__name__)
CONVERSION = 1  # increased when the conversion changes, so that models are converted again
RANKING = "ranking"  # a task for which models of other tasks can also be used
VOCABULARY_MAP = "vmap.txt"  # file from which CTranslate2 reads a shortlist of output tokens
# The number of random sentences, their length in tokens, and the largest mean probability that <pad> and <bos> together
# may have on them. It is 0.02% in trained models, and 0.4% or more in untrained ones.
TRIALS, TRIAL_TOKENS, MAX_SHARE = 32, 12, 0.002
NAMES = ("auto", "torch", "ctranslate2")

C = TypeVar("C", bound=CTranslate2Predictor)


def open_predictor(
    kind: type[C],
    model: str | Path,
    engine: str,
    device: str = "auto",
    precision: str = "float32",
    options: Mapping[str, Any] | None = None,
    others: Sequence[str] = (),
) -> C | None:
    """Load a predictor with CTranslate2; return None if torch is to be used instead.

    Args:
        kind: The class of the predictor, such as `CTranslate2Translator`.
        model: A model folder, a checkpoint, a run, or the name of a bundled model.
        engine: "torch"; "ctranslate2"; or "auto", which selects CTranslate2 wherever its results are identical.
        device: The device to run on; CTranslate2 is used only on CPUs.
        precision: "float32", or "int8", which only CTranslate2 supports.
        options: Search settings that override the recipe's. None if they are passed to later calls, which check them.
        others: Further models, which make it an ensemble, that is, a case for torch.

    Raises:
        InputError: CTranslate2 cannot run this model, but the engine or the precision requires it.
    """
    if not may_use_ctranslate2(engine, precision):
        return None
    if others:
        return leave_ensemble_to_torch([str(model), *others], engine, precision)
    folder = find_model(model)
    manifest = read_manifest(folder)
    recipe, tokenizers = read_description(manifest)
    misfits = installation_misfits() or device_misfits(device)
    misfits = misfits or kind.task_misfits(recipe) or kind.misfits(recipe, tokenizers, options)
    # A text model stored in int8 is converted once, for both precisions.
    stored = INT8 if manifest.facts.get("weights") == INT8 and recipe.data.modality == "text" else precision
    folders = conversions(manifest, stored)
    converted = None if misfits else next(filter(is_intact, folders), None)
    if not misfits and converted is None:  # this model is used for the first time
        converted, misfits = first_conversion(folder, recipe, stored, folders)
    if misfits or converted is None:
        return leave_to_torch(model, engine, misfits, precision)
    warn_of_choice(Path(model), manifest)

    @cache
    def reference() -> Any:
        from heedful.checkpoint.load import load_model

        return load_model(folder).use_as(kind.reference_class)

    LOG.info("%s: using CTranslate2", model)
    return kind(kind.model_class(converted, folder, recipe, precision, reference), tokenizers, options)


def open_for_task(models: Sequence[str], engine: str, device: str, precision: str, task: str | None) -> Any:
    """Load a model with CTranslate2, as the predictor of its task or, for "ranking", as a retriever.

    Return None if torch is to be used instead: for several models, which are an ensemble, and for a model that has a
    different task, which loading with torch reports.
    """
    if not may_use_ctranslate2(engine, precision):
        return None
    model, *others = models
    if others:
        return leave_ensemble_to_torch(models, engine, precision)
    own = read_description(read_manifest(find_model(model)))[0].task
    if task not in (None, own, RANKING):
        return None
    if (task or own) in ENGINE_PREDICTORS:
        options = {} if engine == "auto" else None  # "auto" decides by the recipe's settings
        return open_predictor(ENGINE_PREDICTORS[task or own], model, engine, device, precision, options)
    misfit = f'task = "{own}": must be one of {", ".join(ENGINE_PREDICTORS)}'
    return leave_to_torch(model, engine, [misfit], precision)


def may_use_ctranslate2(engine: str, precision: str = "float32") -> bool:
    """Check the names of an engine and a precision; return True if CTranslate2 is to be used wherever possible."""
    if engine not in NAMES:
        raise InputError(f'unknown engine "{engine}"; choose one of {", ".join(NAMES)}')
    if precision not in COMPUTE_TYPES:
        raise InputError(f'unknown precision "{precision}"; choose {" or ".join(COMPUTE_TYPES)}')
    if engine == "torch" and precision != "float32":
        raise InputError(
            f'the engine "torch" runs in float32, not in {precision}; choose the engine "ctranslate2", or float32'
        )
    return engine != "torch"


def leave_to_torch(model: str | Path, engine: str, misfits: Sequence[str], precision: str = "float32") -> None:
    """Log why torch is used instead of CTranslate2; raise an InputError if the user has asked for CTranslate2."""
    if engine != "auto" or precision != "float32":
        remedy = "--engine torch" if precision == "float32" else "--precision float32 and --engine torch"
        raise InputError("\n  ".join([f"{model}: cannot be run with CTranslate2; use {remedy}", *misfits]))
    LOG.info("%s: using torch, because CTranslate2 does not support: %s", model, "; ".join(misfits))


def leave_ensemble_to_torch(models: Sequence[str], engine: str, precision: str = "float32") -> None:
    """Log that torch is used for an ensemble; raise an InputError if the user has asked for CTranslate2."""
    leave_to_torch(" and ".join(models), engine, ["an ensemble: must be a single model"], precision)


def installation_misfits() -> list[str]:
    try:
        import_ctranslate2()
    except (ImportError, OSError) as error:  # OSError: a system library is missing
        return [f"ctranslate2 cannot be imported ({error}); run `pip install ctranslate2`"]
    return []


def device_misfits(device: str) -> list[str]:
    on_cpu = device == "cpu" or (device == "auto" and not import_ctranslate2().get_cuda_device_count())
    return [] if on_cpu else [f"device {device}: must be cpu; pass --device cpu"]


def first_conversion(
    folder: Path, recipe: Recipe, precision: str, folders: Sequence[Path]
) -> tuple[Path | None, list[str]]:
    """Convert a model to CTranslate2's format, in the first of `folders` that is writable.

    Return that folder and no misfits, or None and the reasons why CTranslate2's results would differ.
    """
    from heedful.convert.ctranslate2_export import model_misfits

    if misfits := model_misfits(recipe.model):
        return None, misfits
    from heedful.architectures import weights
    from heedful.checkpoint.load import load_model
    from heedful.convert.model import Model

    loaded = load_model(folder)
    model = Model(recipe=recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
    if misfits := weight_misfits(model, loaded.model):
        return None, misfits
    return convert(model, precision, folders), []


def weight_misfits(model: Any, network: Any) -> list[str]:
    """List the reasons why CTranslate2's results would differ from the results of `network`.

    `model` is a `convert.model.Model` with the weights of `network`.
    """
    if damaged := [name for name, value in model.weights.items() if not value.isfinite().all()]:
        return [f"{name}: must be finite, but some of its values are infinite or NaN" for name in damaged]
    if model.recipe.data.modality == "audio":
        from heedful.convert.faster_whisper import specification

        try:
            specification(model)
        except InputError as error:
            return [str(error)]
    elif model.recipe.model.family == "encoder_decoder":
        return beam_misfits(network, model.recipe, model.tokenizers.sizes)
    return []


def beam_misfits(model: Any, recipe: Recipe, sizes: tuple[int, int]) -> list[str]:
    """Return a misfit if a translator assigns <pad> and <bos> too much probability, as a barely trained one does.

    CTranslate2 cannot exclude these tokens from its beam without changing all other probabilities. heedful's search in
    torch excludes them.
    """
    import torch

    generator = torch.Generator().manual_seed(1)
    shape = TRIALS, min(TRIAL_TOKENS, recipe.data.max_length)
    source, target = (torch.randint(UNK + 1, size, shape, generator=generator) for size in sizes)
    with torch.no_grad():
        logits = model(source, torch.ones_like(source, dtype=torch.bool), target)
    share = float(logits.float().softmax(-1)[..., [PAD, BOS]].sum(-1).mean())
    if share < MAX_SHARE:
        return []
    return [f"<pad> and <bos>: must have almost no probability, but have {share:.1%}; train the model longer"]


def conversions(manifest: Manifest, precision: str) -> list[Path]:
    """List the folders that may contain a converted model: in the model folder, and in the user's cache."""
    key = hashlib.sha256((manifest.folder / MANIFEST).read_bytes() + bytes([CONVERSION])).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [parent / ENGINES / f"ctranslate2-{precision}-{key}" for parent in (manifest.folder, cache / "heedful")]


def can_write(folder: Path) -> bool:
    """Return True if files can be written to a folder, which is created if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def convert(model: Any, precision: str, folders: Sequence[Path]) -> Path:
    """Convert a `convert.model.Model`, with token ids as its vocabulary, in the first of `folders` that is writable.

    Another process may do so at the same time: the first to finish wins.
    """
    from heedful.convert import ctranslate2_export, faster_whisper

    folder = next((path for path in folders if can_write(path.parent)), None)
    if folder is None:
        parents = " and ".join(str(path.parent) for path in folders)
        raise RunError(f"{parents}: cannot be written to; use --engine torch")
    recipe, tokenizers = model.recipe, model.tokenizers
    with named_write_errors(folder), TemporaryDirectory(prefix=".converting-", dir=folder.parent) as temporary:
        saved = Path(temporary) / "saved"
        if recipe.data.modality == "audio":
            faster_whisper.write(model, saved, precision)
        else:
            saved.mkdir()
            positions = recipe.model.learned_positions or max(POSITIONS, recipe.data.max_length)
            specification = ctranslate2_export.specification(recipe.model, model.weights, positions)
            vocabularies = [[str(i) for i in range(size)] for size in tokenizers.sizes]
            ctranslate2_export.save(specification, saved, recipe.model, vocabularies, precision)
        if tokenizers.shortlist:
            (saved / VOCABULARY_MAP).write_text(tokenizers.shortlist.vocabulary_map(), encoding="ascii")
        writer = FolderWriter(Path(temporary) / folder.name, DISK)
        for file in saved.iterdir():
            writer.write(file.name, [file.read_bytes()])
        writer.seal({"kind": "ctranslate2"})
        if folder.exists() and not is_intact(folder):
            rmtree(folder)
        try:
            writer.path.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was first
                raise
    return folder
