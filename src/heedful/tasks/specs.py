"""Task specs: the families, scores, command and example reader of each task; and checks that recipes fit them.

`SPECS` contains the specs of the bundled tasks by name; each task's class has its spec as the attribute `spec`.
Importing this module does not load torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heedful.config.schema import Modality, Recipe
from heedful.errors import InputError
from heedful.metrics.metric import Metric, Outputs, find_metric, is_computed
from heedful.registry import ARCHITECTURES, MODELS
from heedful.wording import either


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """Facts about a task that the checks before a run and the commands need.

    Attributes:
        families: The model families that can learn the task, by their names in a recipe.
        metrics: The names of the scores; the first selects the best checkpoint unless the recipe chooses another. The
            metrics of `heedful.metrics` are computed from `Task.outputs`; `Task.summary` or `Task.evaluate` computes
            the others, such as the loss.
        predicts: The class of what `Task.outputs` returns, or its `kind`, such as "texts"; None: no score is computed
            from outputs.
        modality: The input of the models: "text", "image", "audio" or "video".
        reads_text: True if models of another modality also have an encoder for texts.
        command: The command that uses models of the task; empty if they can be used only from Python.
        example: An example of arguments for that command.
        pair_field: The default column of the second text in the tables that this command reads.
        reader: For a bundled task, the reader of its dataset class, as "module:Class" in `heedful.tasks.readers`.
    """

    families: tuple[str, ...]
    metrics: tuple[str, ...]
    predicts: type[Outputs] | str | None = None
    modality: Modality = "text"
    reads_text: bool = False
    command: str = ""
    example: str = "'Some text.'"
    pair_field: str | None = None
    reader: str = ""


_sequence_to_sequence = partial(
    TaskSpec,
    families=("encoder_decoder",),
    predicts="texts",
    command="heedful write",
    reader="texts:PairReader",
)
_media_classification = partial(
    TaskSpec,
    families=("encoder", "decoder"),
    metrics=("accuracy", "macro_f1", "f1", "matthews", "loss"),
    predicts="classes",
    command="heedful predict",
    example="FILE",
    reader="media:LabelledFileReader",
)

SPECS: Mapping[str, TaskSpec] = {
    "audio_classification": _media_classification(modality="audio"),
    "captioning": _sequence_to_sequence(
        metrics=("exact_match", "bleu", "loss", "perplexity"),
        modality="image",
        command="heedful caption",
        example="FILE",
        reader="media:FileWithTextReader",
    ),
    "classification": TaskSpec(
        families=("encoder", "decoder"),
        metrics=("accuracy", "macro_f1", "f1", "matthews", "loss"),
        predicts="classes",
        command="heedful predict",
        reader="texts:LabelledTextReader",
    ),
    "dialogue": _sequence_to_sequence(
        metrics=("perplexity", "loss", "rougeL", "distinct_1", "distinct_2"),
        reader="texts:ReplyReader",
    ),
    "image_classification": _media_classification(modality="image"),
    "image_text_retrieval": TaskSpec(
        families=("encoder",),
        metrics=(
            "mrr",
            *(f"{side}_{name}" for side in ("text", "image") for name in ("mrr", "recall@1", "recall@5", "recall@10")),
            "loss",
        ),
        predicts="matches",
        modality="image",
        reads_text=True,
        command="heedful search",
        example="--corpus FOLDER 'Some text.'",
        reader="media:ImageTextReader",
    ),
    "language_model": TaskSpec(
        families=("decoder",),
        metrics=("loss", "perplexity", "byte_perplexity"),
        command="heedful generate",
        reader="running_text:RunningTextReader",
    ),
    "masked_lm": TaskSpec(
        families=("encoder",),
        metrics=("loss", "perplexity", "accuracy", "next_sentence_loss", "next_sentence_accuracy"),
        command="heedful fill",
        example="'The man [MASK] a bike.'",
        reader="running_text:PassageReader",
    ),
    "masked_patches": TaskSpec(
        families=("encoder",),
        metrics=("loss",),
        modality="image",
        command="heedful fill",
        example="FILE --output FILE.png",
        reader="media:MaskedImageReader",
    ),
    "ranking": TaskSpec(
        families=("encoder", "decoder"),
        metrics=("mrr", "recall@1", "recall@10", "ndcg@10", "loss"),
        predicts="rankings",
        command="heedful search",
        example="--corpus FILE 'Some text.'",
        reader="texts:QueryReader",
    ),
    "regression": TaskSpec(
        families=("encoder", "decoder"),
        metrics=("spearman", "pearson", "rmse", "loss"),
        predicts="numbers",
        command="heedful predict",
        reader="texts:ScoredTextReader",
    ),
    "span_qa": TaskSpec(
        families=("encoder", "decoder"),
        metrics=("f1", "exact_match", "loss"),
        predicts="answers",
        command="heedful predict",
        pair_field="pair",  # column of the text that may contain the answer, in a table
        reader="texts:QuestionReader",
    ),
    "speech_recognition": _sequence_to_sequence(
        metrics=("wer", "cer", "exact_match", "loss", "perplexity"),
        modality="audio",
        command="heedful transcribe",
        example="FILE",
        reader="media:FileWithTextReader",
    ),
    "summarisation": _sequence_to_sequence(metrics=("rougeL", "rouge1", "rouge2", "loss", "perplexity")),
    "tagging": TaskSpec(
        families=("encoder", "decoder"),
        metrics=("f1", "precision", "recall", "accuracy", "loss"),
        predicts="tags",
        command="heedful predict",
        reader="texts:TaggedReader",
    ),
    "text_to_text": _sequence_to_sequence(metrics=("exact_match", "loss", "perplexity")),
    "translation": _sequence_to_sequence(metrics=("bleu", "loss", "perplexity"), command="heedful translate"),
    "video_classification": _media_classification(modality="video"),
    "word_vectors": TaskSpec(
        families=("word_vectors",),
        metrics=("loss",),
        command="heedful vectors nearest",
        example="WORD",
        reader="running_text:RunningTextReader",
    ),
}


def outputs_kind(spec: TaskSpec) -> str:
    """Return the kind of a task's outputs, such as "texts"; return "" if no score is computed from outputs."""
    return spec.predicts if isinstance(spec.predicts, str) else spec.predicts.kind if spec.predicts else ""


def score_names(spec: TaskSpec, recipe: Recipe) -> tuple[str, ...]:
    """List the scores of a recipe's task; `evaluate.metrics` replaces those that are computed from outputs."""
    if not recipe.evaluate.metrics:
        return spec.metrics
    kind = outputs_kind(spec)
    return (*recipe.evaluate.metrics, *(name for name in spec.metrics if not is_computed(name, kind)))


def output_metrics(spec: TaskSpec, recipe: Recipe) -> dict[str, Metric]:
    """Find the metrics of a recipe's task that are computed from a model's outputs, by name."""
    kind = outputs_kind(spec)
    names = score_names(spec, recipe) if kind else ()
    return {name: find_metric(name, kind) for name in names if is_computed(name, kind)}


def best_score_name(spec: TaskSpec, recipe: Recipe) -> str:
    """Return the name of the score that selects the best checkpoint: `train.best`, or the first of a validation."""
    if recipe.train.best is not None:
        return recipe.train.best
    # A validation without decoding computes only what follows from the losses.
    return score_names(spec, recipe)[0] if recipe.train.validate_decoding else "loss"


def usage(spec: TaskSpec, model: str | Path) -> str:
    """Return an example of how to use a trained model: a command, or Python code for a task without a command."""
    return f"{spec.command} --model {model} {spec.example}" if spec.command else f'heedful.load("{model}")'


def kind_of_model(task: str) -> str:
    """Describe the models of a task for messages, such as "a translation model"."""
    if ":" in task:
        return f'a model for the task "{task}"'
    words = {
        "image_text_retrieval": "image-text retrieval",
        "language_model": "language",
        "masked_lm": "masked language",
        "masked_patches": "masked-patch",
        "span_qa": "question answering",
        "word_vectors": "word vector",
    }.get(task, task.replace("_", " "))
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words} model"


def check_task(spec: TaskSpec, recipe: Recipe) -> None:
    """Check that a recipe's modality, model family and `train.best` fit its task, or raise an InputError."""
    if recipe.data.modality != spec.modality:
        raise InputError(
            f'data.modality = "{recipe.data.modality}", but a model for the task "{recipe.task}" reads '
            f'"{spec.modality}"; leave data.modality out'
        )
    architecture, learners = recipe.model.architecture, either(f'"{family}"' for family in spec.families)
    if ARCHITECTURES.is_custom(architecture):
        from heedful.architectures.backbone import families_of

        families = families_of(architecture)
    else:
        families = tuple(MODELS[architecture])
    fitting = [family for family in spec.families if family in families]
    if not fitting:
        is_custom = ARCHITECTURES.is_custom(architecture)
        remedy = base_class_remedy(spec) if is_custom else "choose another architecture or another task"
        raise InputError(
            f'task = "{recipe.task}" needs model.family = {learners}, but model.architecture = '
            f'"{architecture}" has only models of family {" or ".join(families)}; {remedy}'
        )
    if recipe.model.family not in fitting:
        default = f', or another task ("{Recipe.task}" is the default)' if recipe.task == Recipe.task else ""
        raise InputError(
            f'task = "{recipe.task}" needs model.family = {learners}, but it is '
            f'"{recipe.model.family}"; set model.family = "{fitting[0]}"{default}'
        )
    names = score_names(spec, recipe)
    if recipe.train.best not in (None, *names):
        raise InputError(
            f'train.best = "{recipe.train.best}": task = "{recipe.task}" has the scores {", ".join(names)}; '
            "choose one of them"
        )


def check_metrics(spec: TaskSpec, recipe: Recipe) -> None:
    """Check that a recipe's metrics can be computed from the outputs of its task."""
    if recipe.evaluate.metrics and spec.predicts is None:
        raise InputError(
            f'evaluate.metrics: task = "{recipe.task}" has only the scores {", ".join(spec.metrics)}; leave the key out'
        )
    for name in recipe.evaluate.metrics:
        find_metric(name, outputs_kind(spec))


BASE_CLASSES = {  # the class that a custom class has to extend, by family
    "encoder_decoder": "heedful.architectures.SourceToTarget",
    "encoder": "heedful.architectures.backbone.EncoderOnly",
    "decoder": "heedful.architectures.backbone.DecoderOnly",
    "word_vectors": "heedful.architectures.word2vec.model.Word2Vec",
}


def base_class_remedy(spec: TaskSpec) -> str:
    """Return the remedy for a message: the class that a custom architecture has to extend for a task."""
    classes = " or ".join(BASE_CLASSES[family] for family in spec.families)
    return f"let the class extend {classes}, or choose another task"
