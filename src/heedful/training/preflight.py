"""Preflight checks: find what would stop a run, in its recipe, files and start models, and on this machine.

`heedful config check` and training perform the same checks. torch is imported only where a recipe needs it: for a
device other than "auto" and "cpu", TensorBoard, start models, word vectors, a checkpoint to resume from, media files,
and custom classes.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from heedful.checkpoint.run_layout import CHECKPOINTS
from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.config.user_code import custom_code, custom_code_errors, import_class
from heedful.errors import InputError
from heedful.tasks import import_reader, import_spec, import_task
from heedful.tasks.readers import ExampleReader
from heedful.tasks.specs import base_class_remedy, check_metrics, check_task
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair

MAX_EXAMPLES = 100  # read from each corpus
LANGUAGES = ("source_language", "target_language")


@contextmanager
def collect_errors(problems: list[str]) -> Iterator[None]:
    """Append the message of an InputError raised in the block to `problems`, so that one error can report them all."""
    try:
        yield
    except InputError as error:
        problems.append(str(error))


def preflight(recipe: Recipe, folder: Path | None = None, extra: Sequence[CorpusConfig] = ()) -> Recipe:
    """Check a recipe against its files, the models it starts from and this machine.

    Args:
        recipe: The recipe of the run.
        folder: The run folder; None: the folder is not checked.
        extra: Corpora not used in training that are also checked, such as the test set.

    Returns:
        The recipe with the shape of the models that it starts from, and the classes or tags of its data.
    """
    problems: list[str] = []
    reader = import_reader(recipe.task)
    for name in recipe.evaluate.metrics:
        import_class(name, "evaluate.metrics")
    with collect_errors(problems):
        # First, because start models determine the shape that all other checks see.
        if recipe.train.start is not None or recipe.train.start_decoder is not None:
            from heedful.training.warm_start import with_warm_start

            recipe = with_warm_start(recipe)
        reader.check(recipe)
    with collect_errors(problems):
        check_model(recipe)
    with collect_errors(problems):
        check_metrics(import_spec(recipe.task), recipe)
    with collect_errors(problems):
        if recipe.train.device not in ("auto", "cpu"):
            from heedful.machine import check_precision, choose_device

            check_precision(recipe.train.precision, choose_device(recipe.train.device, "train.device ="))
        if recipe.train.tensorboard:
            from heedful.training.logger import tensorboard

            with TemporaryDirectory() as curves:
                tensorboard(Path(curves), 0).close()
    with collect_errors(problems):
        if recipe.model.source_vectors is not None or recipe.model.target_vectors is not None:
            from heedful.architectures.word_vectors import check_vectors

            check_vectors(recipe)
    for key in LANGUAGES:  # scores depend on the language
        with collect_errors(problems):
            if (code := getattr(recipe.data, key)) != getattr(DataConfig, key):
                from heedful.text.languages import check_language

                check_language(code, f"data.{key}")
    if folder is not None:
        with collect_errors(problems):
            from heedful.checkpoint.lock import check_claimable

            check_claimable(folder)
    recipe = check_data(reader, recipe, extra, problems)
    if problems:
        messages = list(dict.fromkeys(problems))
        several = "\n  ".join([f"{len(messages)} problems would stop this run", *messages])
        raise InputError(several if len(messages) > 1 else messages[0])

    # What follows takes longer, and makes sense only for a recipe without other problems.
    check_start(recipe)
    if folder is not None and (folder / CHECKPOINTS).is_dir():
        from heedful.checkpoint import Checkpoints, DamagedError
        from heedful.training.resume import check_same_run

        saved = None
        with suppress(DamagedError):  # a run moves a damaged checkpoint aside and resumes from the previous one
            saved = Checkpoints(folder, recipe.train.keep_last).load_latest(strict=True).checkpoint
        if saved:
            check_same_run(recipe, saved)
    return recipe


def check_model(recipe: Recipe) -> None:
    """Check that the model of a recipe fits the task and, if either is a custom class, that the model can be built."""
    check_task(import_spec(recipe.task), recipe)
    if not custom_code(recipe):
        return
    from heedful.architectures import Model
    from heedful.architectures.backbone import Backbone
    from heedful.nn.meta_device import meta_device
    from heedful.tasks.model_size import SizeOnly, vocabulary_sizes

    task = import_task(recipe.task)
    # A custom model is built without values, on the meta device.
    labels = recipe.data.labels or ("a", "b")  # stand-ins: the data has not been read yet
    recipe = replace(recipe, data=replace(recipe.data, labels=labels))
    tokenizers = TokenizerPair(*map(SizeOnly, vocabulary_sizes(recipe)))
    with custom_code_errors(recipe, "the model cannot be built"), meta_device():
        model = task.build(recipe, tokenizers)
    backbone = getattr(model, "backbone", None)
    if not isinstance(model, Model) or (backbone is not None and not isinstance(backbone, Backbone)):
        key, name = next(iter(custom_code(recipe).items()))
        raise InputError(f'{key} = "{name}": it does not make a heedful model; {base_class_remedy(task.spec)}')


def check_data(
    reader: type[ExampleReader], recipe: Recipe, extra: Sequence[CorpusConfig], problems: list[str]
) -> Recipe:
    """Check the beginning of each corpus; return the recipe with the classes or tags of its data."""
    read_beginnings(reader, recipe, extra, problems)
    if problems:
        return recipe
    resolved = recipe
    with collect_errors(problems):
        resolved = reader.resolve(recipe)
    if resolved != recipe:  # the classes are fixed now, and no example may have a different one
        read_beginnings(reader, resolved, extra, problems)
    return resolved


def read_beginnings(
    reader: type[ExampleReader], recipe: Recipe, extra: Sequence[CorpusConfig], problems: list[str]
) -> None:
    """Read the first examples of each corpus, and collect their errors; a missing data folder is a single error."""
    root, valid = Path(recipe.data.root), [recipe.data.valid] if recipe.data.valid else []
    corpora = (*recipe.data.train, *valid, *extra)
    if not root.is_dir() and not all(Path(corpus.source).is_absolute() for corpus in corpora):
        from heedful.storage.paths import no_folder

        problems.append(no_folder(root, "give the correct one with --data", "data folder"))
        return
    for corpus in corpora:
        with collect_errors(problems):
            # Reading is the check: `peek` raises an error at the first bad example.
            deque(islice(reader.peek(corpus, recipe), MAX_EXAMPLES), maxlen=0)


def check_start(recipe: Recipe) -> None:
    """Check that the weights of a warm start fit the model, and that `train.freeze` names weights of the model.

    A model that needs a tokenizer that is yet to be trained cannot be checked.
    """
    path = recipe.tokenizer.path
    is_trained_later = path is None and FAMILIES[recipe.model.family].pairs  # such as the tokenizer of a captioner
    if (recipe.train.start or recipe.train.start_decoder) and not is_trained_later:
        from heedful.nn.meta_device import meta_device
        from heedful.training.warm_start import add_lora, freeze, fresh_weights, transfers

        tokenizers = TokenizerPair.load(Path(path)) if path else NoTokenizers()
        with meta_device():
            model = import_task(recipe.task).build(recipe, tokenizers)
        add_lora(model, recipe, fresh_weights(model, transfers(recipe, model)))
        freeze(model, recipe)
