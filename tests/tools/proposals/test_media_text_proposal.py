"""Proposals for texts about pictures and sounds are recipes that grow with the files, and leave room for the texts."""

import tomllib
from collections import Counter

import pytest

from heedful.config.load import make_recipe
from heedful.tools.proposals.media_proposal import propose_captions, propose_transcripts
from heedful.tools.proposals.media_survey import MediaSurvey, PictureFacts, SoundFacts
from heedful.tools.proposals.proposal import Corpora, Machine, Texts

LAPTOP = Machine(cores=2, bfloat16=False)
SERVER = Machine(cores=16, bfloat16=True, gpu_memory=80)
ENGLISH = "a red circle is on the left"
CHINESE = "一个红色的大圆在左上角"
KINDS = [
    (propose_captions, PictureFacts(64, 64, False), "captioning"),
    (propose_transcripts, SoundFacts(1.7, 8000, 1), "speech_recognition"),
]


def proposed(propose, facts, text, language=None, machine=LAPTOP, count=23, bad=()):
    source = {"source": "files.jsonl", "source_field": "file", "target_field": "text"}
    found = MediaSurvey(Counter({text: count}), [facts] * count, [], list(bad), 0, None)
    texts = Texts("mine", "error", Corpora(source, source, source))
    return make_recipe(tomllib.loads(propose(found, language, machine, texts)))


@pytest.mark.parametrize("machine", [LAPTOP, SERVER])
@pytest.mark.parametrize("count", [23, 40_009, 300_007])
@pytest.mark.parametrize(("propose", "facts", "task"), KINDS)
def test_every_proposal_is_a_recipe_that_grows_with_the_files_and_the_machine(propose, facts, task, count, machine):
    recipe = proposed(propose, facts, ENGLISH, machine=machine, count=count)
    assert recipe.task == task
    assert recipe.train.batch_tokens >= recipe.longest_input
    assert recipe.model.encoder_layers == recipe.model.decoder_layers
    assert recipe.model.d_model == 64 or count > 5_000
    assert recipe.model.d_model <= 128 or machine is SERVER


@pytest.mark.parametrize(("propose", "facts", "task"), KINDS)
def test_the_language_decides_on_the_tokens_and_the_longest_text_on_the_length(propose, facts, task):
    words, characters = (proposed(propose, facts, *text) for text in ((ENGLISH,), (CHINESE, "zh")))
    assert (words.tokenizer.kind, words.data.target_language) == ("bpe", "tgt")
    assert (characters.tokenizer.kind, characters.data.target_language) == ("character", "zh")
    longer = proposed(propose, facts, " ".join([ENGLISH] * 13))
    assert words.decode.extra >= len(ENGLISH.split()) + 1
    assert longer.decode.max_extra == longer.data.filters.max_tokens >= 13 * len(ENGLISH.split()) + 1


def test_files_that_cannot_be_read_are_skipped_where_there_are_some():
    picture = PictureFacts(64, 64, True)
    assert proposed(propose_captions, picture, ENGLISH).data.bad_files == "error"
    assert proposed(propose_captions, picture, ENGLISH, bad=["a.png: it is no picture"]).data.bad_files == "skip"
