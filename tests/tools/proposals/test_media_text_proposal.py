"""Proposals for texts about images and audio are recipes that grow with the files, and leave room for the texts."""

import tomllib
from collections import Counter

import pytest

from heedful.config.load import make_recipe
from heedful.tools.proposals.media_proposal import propose_writer
from heedful.tools.proposals.media_survey import AudioFacts, ImageFacts, MediaSurvey
from heedful.tools.proposals.proposal import Machine, RecipeData

LAPTOP = Machine(cores=2, bfloat16=False)
SERVER = Machine(cores=16, bfloat16=True, gpu_memory=80)
ENGLISH = "a red circle is on the left"
CHINESE = "一个红色的大圆在左上角"
KINDS = [
    ("image", ImageFacts(64, 64, False), "captioning"),
    ("audio", AudioFacts(1.7, 8000, 1), "speech_recognition"),
]


def proposed(kind, facts, text, language=None, machine=LAPTOP, count=23, bad=()):
    source = {"source": "files.jsonl", "source_field": "file", "target_field": "text"}
    found = MediaSurvey(Counter({text: count}), [facts] * count, [], list(bad), 0, None)
    texts = RecipeData("mine", "error", dict.fromkeys(("train", "valid", "test"), source))
    return make_recipe(tomllib.loads(propose_writer(kind, found, language, machine, texts)))


@pytest.mark.parametrize("machine", [LAPTOP, SERVER])
@pytest.mark.parametrize("count", [23, 40_009, 300_007])
@pytest.mark.parametrize(("kind", "facts", "task"), KINDS)
def test_every_proposal_is_a_recipe_that_grows_with_the_files_and_the_machine(kind, facts, task, count, machine):
    recipe = proposed(kind, facts, ENGLISH, machine=machine, count=count)
    assert recipe.task == task
    assert recipe.train.batch_tokens >= recipe.longest_input
    assert recipe.model.encoder_layers == recipe.model.decoder_layers
    assert recipe.model.d_model == 64 or count > 5_000
    assert recipe.model.d_model <= 128 or machine is SERVER


@pytest.mark.parametrize(("kind", "facts", "task"), KINDS)
def test_the_language_decides_on_the_tokens_and_the_longest_text_on_the_length(kind, facts, task):
    words, characters = (proposed(kind, facts, *text) for text in ((ENGLISH,), (CHINESE, "zh")))
    assert (words.tokenizer.kind, words.data.target_language) == ("bpe", "tgt")
    assert (characters.tokenizer.kind, characters.data.target_language) == ("character", "zh")
    longer = proposed(kind, facts, " ".join([ENGLISH] * 13))
    assert words.decode.extra >= len(ENGLISH.split()) + 1
    assert longer.decode.max_extra == longer.data.filters.max_tokens >= 13 * len(ENGLISH.split()) + 1


def test_files_that_cannot_be_read_are_skipped_where_there_are_some():
    picture = ImageFacts(64, 64, True)
    assert proposed("image", picture, ENGLISH).data.bad_files == "error"
    assert proposed("image", picture, ENGLISH, bad=["a.png: it is no picture"]).data.bad_files == "skip"
