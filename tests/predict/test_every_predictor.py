"""What every predictor has, whatever its task."""

import pytest

from every_task import RECIPES
from heedful.decode.predictor import Predictor
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer

WITHOUT_TEXT = ("image_classification", "audio_classification", "video_classification", "masked_patches")


@pytest.mark.parametrize("task", RECIPES)
def test_the_tokenizer_of_every_predictor_has_one_name(task, tmp_path):
    (tmp_path / "data").mkdir()
    prepared = find_task(task).prepare(RECIPES[task](tmp_path / "data"), tmp_path / "prepared", lambda _: None)
    predictor = prepared.use(prepared.build(prepared.recipe, prepared.tokenizers), prepared.recipe, prepared.tokenizers)
    assert isinstance(predictor, Predictor)
    if task in WITHOUT_TEXT:
        assert predictor.tokenizer is None
    else:
        assert isinstance(predictor.tokenizer, Tokenizer)
