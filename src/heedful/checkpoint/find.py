"""Find a model folder by its path, by its run's path, or by the name of a bundled model or one on the Hub.

This module does not import torch.
"""

import logging
import shlex
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from heedful.checkpoint.hub import download, is_hub_name
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, LOCK, checkpoint_folders, read_best, step_of
from heedful.config.load import FILE
from heedful.errors import HeedfulError, InputError
from heedful.storage.complete_folder import MANIFEST, Manifest, read_manifest
from heedful.storage.paths import first_missing, near_paths
from heedful.wording import did_you_mean, either

LOG = logging.getLogger(__name__)  # warnings appear on standard error unless the program configures logging
BUNDLED = Path(str(files("heedful"))) / "box"  # models that come with the package
PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def find_model(path: str | Path) -> Path:
    """Find a model's folder or checkpoint by path, or by the name of a bundled model or one on the Hub (hf:...)."""
    folder = Path(path)
    if folder.is_file():
        advice = f"{folder} is a file, but a model is a folder; give a model folder, a checkpoint or a run"
        if folder.suffix in PICKLED:
            advice = f"{folder}: heedful does not load {folder.suffix} files, which can run code; give a model folder"
        elif model_in(folder.parent):
            advice = f"{folder} is a file: give the model folder that contains it"
        raise InputError(advice)
    if not folder.is_dir():
        return _named_model(str(folder))  # `Path` has removed a slash at the end
    # A folder that contains a model takes precedence over a bundled model of the same name.
    if model := model_in(folder):
        return model
    runs = _runs_in(folder)
    if str(path) in bundled_names():
        _warn_of_bundled(folder.resolve(), f"; to use your own, give {either(runs)}" if runs else "")
        return BUNDLED / str(path)
    raise _not_a_model(folder, runs)


@cache  # once per folder, although a command looks a model up several times
def _warn_of_bundled(folder: Path, remedy: str) -> None:
    name = folder.name
    LOG.warning("the folder %s does not contain a model; using the bundled model of that name%s", name, remedy)


def _not_a_model(folder: Path, runs: Sequence[str]) -> InputError:
    """Return an error that says what a folder is, if not a model; `runs` are the folders in it that have a model."""
    names = {path.name for path in folder.iterdir()}
    other_format = ""
    if "model.bin" in names and names & {"config.json", "vocabulary.txt", "vocabulary.json", "shared_vocabulary.json"}:
        other_format = "CTranslate2"
    elif "config.json" in names and any(
        name.endswith(".safetensors") or name.startswith("pytorch_model") for name in names
    ):
        other_format = "Hugging Face"
    if other_format:
        return InputError(
            f"{folder} is a model in {other_format} format, not a heedful model; convert it first: "
            f"heedful convert {shlex.quote(str(folder))} --out NAME, and use NAME"
        )
    if (folder / FILE).is_file():
        remedy = f"give {either(runs)}" if runs else f"train it with `heedful train {folder} --out RUN`, then give RUN"
        return InputError(f"{folder} is a recipe, not a model; {remedy}")
    if (folder / LOCK).is_file():
        return InputError(
            f"{folder} is a run that has no checkpoint or model yet; continue it with `heedful train RECIPE --out "
            f"{folder}`"
        )
    if runs:
        number = "one" if len(runs) == 1 else "several"
        return InputError(f"{folder} is not a heedful model, but contains {number}; give {either(runs)}")
    run = next((parent for parent in folder.parents if (parent / LOCK).is_file() and model_in(parent)), None)
    if run:
        return InputError(f"{folder} is a part of the run {run} that is not a model; give {run}")
    return InputError(
        f"{folder} is not a heedful model: it has no {MANIFEST}, no model/{MANIFEST} and no checkpoints; give a model "
        "folder, a checkpoint or a run"
    )


def model_in(folder: Path) -> Path | None:
    """Find the model in a folder: the folder itself if it is a model folder, or a run's final model or checkpoint.

    Without a final model, a run's best checkpoint is returned, or else its latest; None if there is none.
    """
    for candidate in (folder, folder / "model"):
        if (candidate / MANIFEST).is_file() and not _is_data(candidate):
            return candidate
    best = best_checkpoint(folder)
    return best or next(reversed(checkpoint_folders(folder)), None)


def _is_data(folder: Path) -> bool:
    """Return True if a folder with a manifest contains prepared data, not a model."""
    with suppress(HeedfulError):  # a damaged manifest, which is reported when the model is loaded
        return read_manifest(folder).facts.get("kind") == "data"
    return False


def best_checkpoint(run: Path) -> Path | None:
    """Return the best checkpoint of a run; None if none is marked, or if the marked one does not exist."""
    best = read_best(run / CHECKPOINTS / BEST)
    folders = [folder for folder in checkpoint_folders(run) if best and step_of(folder) == best.step]
    return folders[0] if folders else None


def warn_of_choice(path: Path, manifest: Manifest) -> None:
    """Warn if the model found in a run is a checkpoint, or is older than the newest checkpoint.

    Args:
        path: The path that the user gave.
        manifest: The manifest of the model that is used.
    """
    folder = manifest.folder
    if folder.parent == path / CHECKPOINTS:
        kind = "best" if best_checkpoint(path) else "latest"
        description = f"{kind} checkpoint, from update {step_of(folder)}"
        LOG.warning("%s has no final model yet; using its %s", path, description)
    if folder == path / "model":
        # A run that was resumed after writing its final model has later checkpoints.
        end, newest = manifest.facts.get("update"), next(reversed(checkpoint_folders(path)), None)
        if end is not None and newest is not None and step_of(newest) > end:
            LOG.warning(
                "%s was trained further after its final model; using that model, from update %s; for a later state, "
                "give %s",
                path,
                f"{end:,}",
                newest,
            )


def _runs_in(folder: Path) -> list[str]:
    return [str(child) for child in sorted(folder.iterdir()) if child.is_dir() and model_in(child)]


def bundled_names() -> list[str]:
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{MANIFEST}"))


def _named_model(name: str) -> Path:
    if is_hub_name(name):
        return download(name)
    names = bundled_names()
    if name in names:
        return BUNDLED / name
    near = [
        *near_paths(Path(name), lambda path: path.is_dir() and model_in(path)),
        *get_close_matches(name, names, cutoff=0.7),
    ]
    if near:
        raise InputError(f'no model "{name}": no such folder; {did_you_mean(near)}')
    parent = Path(name).parent
    if parent.name and parent.is_dir():
        if runs := _runs_in(parent):
            raise InputError(f'no model "{name}": no such folder; {parent} contains {", ".join(runs)}')
        content = f"{parent} contains no run or model yet"
        raise InputError(f'no model "{name}": no such folder, and {content}; `heedful train` creates a run')
    missing = first_missing(Path(name))
    nor = f", nor a folder {missing}" if missing != Path(name) else ""
    bundled = f"bundled models: {', '.join(names)}" if names else "no models are bundled"
    raise InputError(f'no model "{name}": no such folder{nor}; {bundled}')
