"""Options of `heedful predict` that say how a classifier decides: thresholds, and the most probable classes."""

from typing import Annotated

import typer

from heedful.errors import InputError

Threshold = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[CLASS=]P",
        help="Probability from which a class is named: 0.8 leaves out less probable ones; CLASS=0.3 names one class "
        "from there on, and otherwise the most probable of the others. Can be repeated.",
        show_default="the most probable class",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k", min=1, help="Number of the most probable classes to write.", show_default="all in tables and JSON"
    ),
]


def decide_by(predictor: object, model: str, threshold: list[str] | None, top_k: int | None) -> None:
    """Let a classifier decide as the options say.

    Raises:
        InputError: There are options, and the predictor does not predict classes; or a threshold is not one.
    """
    from heedful.predict.classifier import Classifier
    from heedful.predict.decision import decision_of
    from heedful.predict.media_classifier import MediaClassifier

    if not threshold and top_k is None:
        return
    if not isinstance(predictor, Classifier | MediaClassifier):
        option = "--threshold" if threshold else "--top-k"
        raise InputError(f"{option} is for classifiers, and {model} does not predict classes; leave it out")
    predictor.decide_by(decision_of(threshold or (), top_k, predictor.labels))
