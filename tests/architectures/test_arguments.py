"""What a model is called with is checked: the error names the argument, the shape or the id."""

import pytest
import torch

import toy_captions
from heedful.architectures import LanguageModel, TextClassifier, TokenClassifier
from heedful.architectures.backbone import model_class
from heedful.architectures.heads import SentenceEncoder
from heedful.architectures.transformer.masked_models import MaskedLanguageModel
from heedful.architectures.transformer.model import EncoderDecoder
from heedful.config.load import make_recipe
from heedful.config.schema import ModelConfig
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.tasks.model_size import SizeOnly
from heedful.text.tokenizer_pair import TokenizerPair

CONFIG = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, decoder_layers=1, segments=2)
VOCABULARY = 23
IDS = torch.tensor([[5, 7, 11], [13, 17, 19]])

MODELS = {
    "language model": lambda: LanguageModel(CONFIG, VOCABULARY),
    "BERT": lambda: MaskedLanguageModel(CONFIG, VOCABULARY, pairs=True),
    "classifier": lambda: TextClassifier(CONFIG, VOCABULARY, 3),
    "tagger": lambda: TokenClassifier(CONFIG, VOCABULARY, 3),
    "sentence encoder": lambda: SentenceEncoder(CONFIG, VOCABULARY),
}
WRONG = {
    "1-dimensional": (IDS[0], r"has shape \(3,\); expected \(batch, tokens\); \w+\[None\] is a batch of one"),
    "3-dimensional": (IDS[None], r"has shape \(1, 2, 3\); expected \(batch, tokens\)"),
    "too large": (
        torch.tensor([[1, 2], [23, 1]]),
        r"contains the id 23 in row 1, column 0; valid ids are 0 to 22",
    ),
    "negative": (torch.tensor([[1, -3]]), "contains the id -3 in row 0, column 1"),
    "of floats": (IDS.float(), "has dtype torch.float32; token ids must be integers"),
    "a list": ([[1, 2]], r"is a list, not a tensor; give ids of shape \(batch, tokens\)"),
}


@pytest.mark.parametrize("name", MODELS)
def test_without_a_padding_mask_all_tokens_are_real(name):
    model = MODELS[name]().eval()
    mask, segments = torch.ones_like(IDS, dtype=torch.bool), torch.zeros_like(IDS)
    expected = model(IDS, mask) if name == "language model" else model(IDS, mask, segments)
    assert torch.equal(model(IDS), expected)


@pytest.mark.parametrize("architecture", ["transformer", "recurrent", "convolutional", "bytenet"])
def test_without_padding_masks_all_tokens_of_both_texts_are_real(architecture):
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    small = {"transformer": {"heads": 2}, "recurrent": {}, "convolutional": layers, "bytenet": layers}
    settings = {"architecture": architecture, "d_model": 14, **small[architecture]}
    config = make_recipe({"model": settings}).model
    model = model_class(config)(config, VOCABULARY, VOCABULARY).eval()
    source, target = IDS, IDS[:, :2]
    masks = [torch.ones_like(ids, dtype=torch.bool) for ids in (source, target)]
    expected = model(source, masks[0], target, masks[1])
    assert torch.equal(model(source, None, target), expected)
    assert torch.equal(model(source=source, source_padding_mask=None, target=target), expected)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_ids_are_named(name, kind):
    ids, message = WRONG[kind]
    with pytest.raises(InputError, match=message):
        MODELS[name]()(ids)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 4, dtype=torch.bool), r"padding_mask has shape \(2, 4\), but the ids have shape \(2, 3\)"),
        (torch.ones(2, 3), "padding_mask has dtype torch.float32; expected torch.bool"),
    ],
)
def test_a_wrong_mask_is_named(name, mask, message):
    with pytest.raises(InputError, match=message):
        MODELS[name]()(IDS, mask)
    with pytest.raises(InputError, match=message):
        MODELS[name]()(IDS, padding_mask=mask)


def test_a_wrong_mask_of_the_text_that_a_model_writes_about_an_image_is_named(tmp_path):
    recipe = toy_captions.recipe("captioning", tmp_path)
    model = find_task(recipe.task).build(recipe, TokenizerPair(SizeOnly(VOCABULARY), SizeOnly(VOCABULARY)))
    images = torch.zeros(2, 3, *recipe.image.size)
    with pytest.raises(InputError, match=r"target_padding_mask has shape \(1, 3\), but the ids have shape \(2, 3\)"):
        model(images, None, IDS, torch.ones(1, 3, dtype=torch.bool))


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("kind", WRONG)
def test_an_encoder_decoder_names_the_side(side, kind):
    model = EncoderDecoder(ModelConfig(d_model=14, d_ff=19, heads=2, encoder_layers=1), VOCABULARY, VOCABULARY)
    mask = torch.ones_like(IDS, dtype=torch.bool)
    given = {"source": IDS, "source_padding_mask": mask, "target": IDS, "target_padding_mask": mask}
    with pytest.raises(InputError, match=f"{side} {WRONG[kind][1]}"):
        model(**given | {side: WRONG[kind][0]})


def test_a_source_for_each_target_is_asked_for():
    model = EncoderDecoder(ModelConfig(d_model=14, d_ff=19, heads=2, encoder_layers=1), VOCABULARY, VOCABULARY)
    mask = torch.ones_like(IDS, dtype=torch.bool)
    with pytest.raises(InputError, match="source has 2 rows, but target has 1; row n of both must correspond"):
        model(IDS, mask, IDS[:1], mask[:1])
