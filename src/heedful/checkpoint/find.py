"""Find a model folder by its path, the path of its run, or its name: bundled, or on the Hub. Without torch."""

import logging
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from heedful.checkpoint.hub import download, is_hub_name
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, LOCK, checkpoint_folders, read_best, step_of
from heedful.config.load import FILE
from heedful.errors import InputError
from heedful.storage.complete_folder import MANIFEST, Manifest
from heedful.storage.paths import first_lost, near_paths
from heedful.wording import either

LOG = logging.getLogger(__name__)  # warnings appear on standard error unless the program configures logging
BUNDLED = Path(str(files("heedful"))) / "box"  # models that come with the package
PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def find_model(path: str | Path) -> Path:
    """Find a model's folder or checkpoint by path, or by the name of a bundled model or one on the Hub (hf:...)."""
    place = Path(path)
    if place.is_file():
        advice = f"{place} is a file, but a model is a folder; give a model folder, a checkpoint or a run"
        if place.suffix in PICKLED:
            advice = f"{place} is a pickle, which can run code, so heedful does not load it: give a model folder"
        elif model_in(place.parent):
            advice = f"{place} is a file: give the model folder that contains it"
        raise InputError(advice)
    if not place.is_dir():
        return _named_model(str(place))  # without a slash at the end
    # A folder that contains a model takes precedence over a bundled model of the same name.
    if model := model_in(place):
        return model
    runs = _runs_in(place)
    yours = f"give {' or '.join(runs)}" if runs else ""
    if str(path) in bundled_names():
        remedy = f"; for your model {yours}" if runs else ""
        LOG.warning("the folder %s does not contain a model: the bundled model of that name is used%s", path, remedy)
        return BUNDLED / str(path)
    names = {path.name for path in place.iterdir()}
    other_format = ""
    if "model.bin" in names and names & {"config.json", "vocabulary.txt", "vocabulary.json", "shared_vocabulary.json"}:
        other_format = "CTranslate2"
    elif "config.json" in names and any(
        name.endswith(".safetensors") or name.startswith("pytorch_model") for name in names
    ):
        other_format = "Hugging Face"
    if other_format:
        raise InputError(
            f"{place} is a model in {other_format} format, not a heedful model; convert it first: "
            f"heedful convert {place} --out NAME, and use NAME"
        )
    if (place / FILE).is_file():
        raise InputError(
            f"{place} is a recipe, not a model; train it with `heedful train {place} --out RUN`, then give RUN"
        )
    if (place / LOCK).is_file():
        raise InputError(
            f"{place} is a run without a checkpoint or a model yet; continue it: heedful train RECIPE --out {place}"
        )
    advice = yours or "give a model folder, a checkpoint or a run"
    raise InputError(
        f"{place} is not a heedful model: it has no {MANIFEST}, no model/{MANIFEST} and no checkpoints; {advice}"
    )


def model_in(folder: Path) -> Path | None:
    """Return a model folder itself, or a run's final model, else its best, else its latest checkpoint, or None."""
    for place in (folder, folder / "model"):
        if (place / MANIFEST).is_file():
            return place
    best = best_checkpoint(folder)
    return best or next(reversed(checkpoint_folders(folder)), None)


def best_checkpoint(run: Path) -> Path | None:
    """Return the best checkpoint of a run; None if none is marked, or it does not exist."""
    best = read_best(run / CHECKPOINTS / BEST)
    places = [place for place in checkpoint_folders(run) if best and step_of(place) == best.step]
    return places[0] if places else None


def warn_of_choice(path: Path, manifest: Manifest) -> None:
    """Warn if the model found in a run is a checkpoint, or is older than the newest checkpoint.

    Args:
        path: The place that the user gives.
        manifest: The manifest of the model that is used.
    """
    folder = manifest.folder
    if folder.parent == path / CHECKPOINTS:
        kind = "best" if best_checkpoint(path) else "latest"
        description = f"{kind} checkpoint, of update {step_of(folder)},"
        LOG.warning("%s has no final model yet; its %s is used", path, description)
    if folder == path / "model":
        # A run that was resumed after its final model has later checkpoints.
        end, newest = manifest.facts.get("update"), next(reversed(checkpoint_folders(path)), None)
        if end is not None and newest is not None and step_of(newest) > end:
            LOG.warning(
                "%s was trained further after its final model, of update %s, which is used; for a later state give %s",
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
    near = [*near_paths(Path(name), lambda place: place.is_dir() and model_in(place)), *get_close_matches(name, names)]
    if near:
        raise InputError(f'no model "{name}": no such folder; did you mean {either(near)}?')
    parent = Path(name).parent
    if parent.name and parent.is_dir():
        content = f"{parent} contains {', '.join(_runs_in(parent)) or 'no run or model yet'}"
        raise InputError(f'no model "{name}": no such folder, and {content}; `heedful train` creates a run')
    missing = first_lost(Path(name))
    nor = f", nor a folder {missing}" if missing != Path(name) else ""
    bundled = f"bundled models: {', '.join(names)}" if names else "no models are bundled"
    raise InputError(f'no model "{name}": no such folder{nor}; {bundled}')
