import pytest

from heedful.errors import InputError
from heedful.predictors.predictor import TEXTS


def test_an_error_of_whoever_makes_the_texts_is_theirs():
    def texts():
        yield "a"
        raise InputError("line 2: broken")

    with pytest.raises(InputError, match=r"^line 2: broken$"):
        list(TEXTS.each(texts()))


def test_several_texts_have_a_list_of_answers_in_their_order_and_one_has_one():
    def upper(texts):
        return (text.upper() for text in texts)

    assert TEXTS.one_or_all(upper, iter(["a", "b"])) == ["A", "B"]
    assert TEXTS.one_or_all(upper, "ab") == "AB"
