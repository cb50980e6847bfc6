"""The class that is named follows from the probabilities and thresholds, and what is shown from `top_k`."""

import pytest

from heedful.errors import InputError
from heedful.predictors.classifier import Decision, decision_of

SHARES = {"ant": 0.2, "bee": 0.45, "cow": 0.35}


@pytest.mark.parametrize(
    ("thresholds", "label"),
    [
        ([], "bee"),
        (["0.45"], "bee"),
        (["0.46"], ""),
        (["cow=0.3"], "cow"),
        (["cow=0.36"], "bee"),
        (["bee=0.5"], "cow"),
        (["ant=0.1", "cow=0.3"], "cow"),
        (["bee=0.5", "0.4"], ""),
        (["cow=0.3", "0.4"], "cow"),
        (["ant=0.9", "bee=0.9", "cow=0.9"], ""),
    ],
)
def test_thresholds_decide_on_the_class(thresholds, label):
    assert decision_of(thresholds, None, list(SHARES)).classify(SHARES).label == label


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("high", "give a probability from 0 to 1, such as 0.8, or CLASS=0.3 for one class"),
        ("1.5", "from 0 to 1"),
        ("nan", "from 0 to 1"),
        ("cow=", "from 0 to 1"),
        ("gnu=0.3", "'gnu' is not one of the classes ant, bee, cow"),
        ("=0.3", "'' is not one of the classes ant, bee, cow"),
    ],
)
def test_a_threshold_is_a_probability_of_a_class(text, message):
    with pytest.raises(InputError, match=f"--threshold {text}: .*{message}"):
        decision_of([text], None, list(SHARES))


def test_a_class_whose_name_has_an_equals_sign_has_a_threshold_too():
    assert decision_of(["a=b=0.5"], None, ["a=b", "c"]).thresholds == {"a=b": 0.5}


def test_all_probabilities_are_shown_in_the_order_of_the_classes():
    decision = Decision()
    answer = decision.classify(SHARES)
    assert decision.columns(list(SHARES)) == ("label", "probability_ant", "probability_bee", "probability_cow")
    assert decision.cells(answer) == dict(zip(decision.columns(list(SHARES)), ["bee", 0.2, 0.45, 0.35], strict=True))
    assert decision.line(answer) == str(answer) == "bee"


@pytest.mark.parametrize("top_k", [1, 2, 7])
def test_the_most_probable_classes_are_shown_in_their_order(top_k):
    decision = Decision(top_k=top_k)
    answer = decision.classify(SHARES)
    ranked = [("bee", 0.45), ("cow", 0.35), ("ant", 0.2)][:top_k]
    assert list(answer.probabilities.items()) == ranked
    columns = decision.columns(list(SHARES))
    assert columns[:3] == ("label", "label_1", "probability_1")
    assert decision.cells(answer) == dict(zip(columns, ["bee", *(x for pair in ranked for x in pair)], strict=True))
    assert decision.line(answer) == "\t".join(f"{label}\t{share:.4f}" for label, share in ranked)
