"""What every predictor has, whatever its task."""

from pathlib import Path
from typing import Any

import pytest

from every_task import RECIPES
from heedful.errors import InputError
from heedful.predictors import Text
from heedful.predictors.predictor import Predictor
from heedful.predictors.text_predictor import TextsAndPairs
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer

WITHOUT_TEXT = ("image_classification", "audio_classification", "video_classification", "masked_patches")


def untrained(task: str, folder: Path) -> Any:
    (folder / "data").mkdir()
    prepared = find_task(task).prepare(RECIPES[task](folder / "data"), folder / "prepared", lambda _: None)
    return prepared.use(prepared.build(prepared.recipe, prepared.tokenizers), prepared.recipe, prepared.tokenizers)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("task", RECIPES)
def test_the_tokenizer_of_every_predictor_has_one_name(task, tmp_path):
    predictor = untrained(task, tmp_path)
    assert isinstance(predictor, Predictor)
    if task in WITHOUT_TEXT:
        assert predictor.tokenizer is None
    else:
        assert isinstance(predictor.tokenizer, Tokenizer)


@pytest.mark.parametrize("task", ["classification", "regression", "span_qa"])
def test_a_tuple_of_two_texts_is_a_pair_in_a_list_and_nothing_outside(task, tmp_path):
    predictor = untrained(task, tmp_path)
    assert isinstance(predictor.inputs, TextsAndPairs)
    pair = ("who", "the old dog")
    for use in (predictor, predictor.predict, predictor.predict_lines):
        with pytest.raises(InputError, match=r"may be a pair or two texts; give Text\(first, second\) or \["):
            use(pair)
    assert str(predictor.predict([pair])[0]) == str(predictor.predict(Text(*pair)))
