"""CLIPs of Hugging Face and of heedful compute the same, whichever is made of the other."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import foreign_models
from foreign_folders import LINES, TEXTS
from heedful.architectures import weights
from heedful.architectures.dual_encoder.model import DualEncoder
from heedful.checkpoint import load_model, write_model
from heedful.config.load import load_preset
from heedful.convert import FORMATS, Model
from heedful.errors import InputError
from heedful.media.images import cropped
from heedful.predictors.image_text_retriever import ImageTextRetriever
from heedful.registry import EXPORTERS
from heedful.tasks import find_task
from heedful.text.hugging_face import from_hugging_face
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

transformers = pytest.importorskip("transformers")

read, write = FORMATS["clip"].read, EXPORTERS["clip"].write
WORDS = [text for text in TEXTS if text.strip()]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A folder and the model in it."""
    folder = tmp_path_factory.mktemp("clip") / "model"
    return folder, foreign_models.clip(folder)


def loaded(model, folder):
    write_model(folder, model.recipe, model.tokenizers, model.weights)
    return load_model(folder)


def pictures(count, size=(35, 35)):
    rng = np.random.default_rng(count)
    return [rng.integers(256, size=(*size, 3), dtype=np.uint8) for _ in range(count)]


def rows_of(ids, padding):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ids], batch_first=True, padding_value=padding)


def their_vectors(folder, model, arrays, texts):
    """The vectors of images and texts by transformers alone: its own tokenizer and its own reading of images."""
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        encoded = tokenizer(texts, padding=True, truncation=True, max_length=61, return_tensors="pt")
        pixels = torch.stack([normalised(array) for array in arrays])
        found = model(**encoded, pixel_values=pixels)
    return found.image_embeds.numpy(), found.text_embeds.numpy(), found.logits_per_image


def normalised(array):
    mean, std = (torch.tensor(x) for x in ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]))
    return ((torch.tensor(array) / 255 - mean) / std).permute(2, 0, 1)


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
def test_a_converted_model_gives_the_same_vectors(activation, tmp_path):
    folder = tmp_path / "clip"
    original = foreign_models.clip(folder, hidden_act=activation)
    converted = read(folder)
    ours = loaded(converted, tmp_path / "ours")
    assert (ours.recipe.task, ours.recipe.model.activation) == ("image_text_retrieval", activation)
    assert not converted.left_out
    arrays = pictures(5)
    found_pictures, found_texts, logits = their_vectors(folder, original, arrays, WORDS)
    retriever = ours.use_as(ImageTextRetriever)
    np.testing.assert_allclose(retriever.encode(arrays), found_pictures, atol=1e-5)
    np.testing.assert_allclose(retriever.encode(WORDS), found_texts, atol=1e-5)
    assert found_pictures.std() > 0.1
    assert found_texts.std() > 0.1
    scale = ours.use_as(ImageTextRetriever).model.scale.item()
    assert scale == pytest.approx(float(original.state_dict()["logit_scale"].exp()))
    cosines = scale * torch.from_numpy(retriever.encode(arrays) @ retriever.encode(WORDS).T)
    torch.testing.assert_close(cosines, logits, atol=1e-4, rtol=0)


def test_texts_are_cut_as_by_the_tokenizer_of_clip(theirs):
    ours, old_id_of = from_hugging_face(theirs[0])
    tokenizer = transformers.CLIPTokenizer.from_pretrained(theirs[0])
    for text in [*TEXTS, "I'll  pay 12.5€ for_it — it's they're\u00a0here", "e\u0301te\u0301 ÉTÉ"]:
        assert old_id_of[ours.encode(text)].tolist() == tokenizer(text)["input_ids"][1:-1]


def test_a_tokenizer_in_one_file_is_the_same(theirs, tmp_path):
    transformers.CLIPTokenizer.from_pretrained(theirs[0]).save_pretrained(tmp_path)
    assert not (tmp_path / "vocab.json").exists()
    separate, together = (from_hugging_face(folder) for folder in (theirs[0], tmp_path))
    np.testing.assert_array_equal(separate[1], together[1])
    for text in TEXTS:
        assert separate[0].encode(text) == together[0].encode(text)


def test_what_is_encoded_can_be_read(theirs):
    ours, _ = from_hugging_face(theirs[0])
    assert ours.decode(ours.encode("The CAT, and\nthe café!")) == "the cat , and the café !"
    ids = ours.encode("the cat sits")
    assert ours.word_of_piece(ids) == sorted(ours.word_of_piece(ids))
    assert ours.word_of_piece(ids)[-1] == 2
    assert "".join(ours.pieces(ids)) == "the▁cat▁sits▁"


@pytest.mark.parametrize("text", ["<|startoftext|>", "a<|endoftext|>b", "<eos>", "<pad> cat"])
def test_a_special_token_that_is_typed_is_text(theirs, text):
    ours, _ = from_hugging_face(theirs[0])
    assert min(ours.encode(text)) > 3


def test_there_and_back_again_changes_nothing(theirs, tmp_path):
    ours = read(theirs[0])
    write(ours, tmp_path / "theirs")
    again = read(tmp_path / "theirs")
    assert again.recipe.model == ours.recipe.model
    assert again.recipe.image == ours.recipe.image
    assert again.recipe.data.max_length == ours.recipe.data.max_length == 61
    assert again.tokenizers.source.digest == ours.tokenizers.source.digest
    assert again.weights.keys() == ours.weights.keys()
    assert all(torch.equal(again.weights[name], value) for name, value in ours.weights.items())


OWN = [
    'task="image_text_retrieval"',
    "image.size=[35, 35]",
    "image.patch=7",
    "image.mean=[0.4]",
    "model.d_model=26",
    "model.d_ff=41",
    "model.heads=2",
    "model.encoder_layers=2",
    "model.max_positions=31",
    "model.text_d_model=22",
    "model.text_d_ff=37",
    "model.text_heads=2",
    "model.text_layers=3",
    "model.text_max_positions=61",
    "data.max_length=61",
    "model.projection=19",
    "tokenizer.vocab_size=401",
]


def random_clip(*overrides):
    """A random model of heedful in the shape of a CLIP, with a tokenizer of its own."""
    recipe = load_preset("clip-base", [*OWN, *overrides])
    tokenizer = train_tokenizer(LINES, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    built = find_task(recipe.task).build(recipe, pair).eval()
    for name, parameter in built.named_parameters():
        parameter.data = 0.3 * torch.randn_like(parameter) + (name == "log_scale") * 5
    assert isinstance(built, DualEncoder)
    return Model(recipe=recipe, tokenizers=pair, weights=weights(built)), built


@pytest.mark.parametrize("overrides", [[], ["model.bias=false", "model.attention_bias=false", 'model.pooling="first"']])
def test_transformers_computes_the_vectors_of_a_model_of_heedful(overrides, tmp_path):
    model, built = random_clip(*overrides)
    write(model, tmp_path / "theirs")
    written, report = transformers.CLIPModel.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|startoftext|>", "<|endoftext|>")
    reader = transformers.CLIPImageProcessorPil.from_pretrained(tmp_path / "theirs")
    arrays, texts = pictures(5), [text for text in WORDS if "<" not in text]
    pixels = reader([Image.fromarray(array) for array in arrays], return_tensors="pt")
    with torch.inference_mode():
        found = written.eval()(**tokenizer(texts, padding=True, return_tensors="pt"), **pixels)
    retriever = loaded(model, tmp_path / "ours").use_as(ImageTextRetriever)
    np.testing.assert_allclose(retriever.encode(arrays), found.image_embeds, atol=1e-5)
    np.testing.assert_allclose(retriever.encode(texts), found.text_embeds, atol=1e-5)
    assert built.scale.item() == pytest.approx(100)  # at most, whatever was learned
    assert written.logit_scale.exp().item() == pytest.approx(100, rel=1e-5)
    again = loaded(read(tmp_path / "theirs"), tmp_path / "again").use_as(ImageTextRetriever)
    np.testing.assert_allclose(again.encode(arrays), retriever.encode(arrays), atol=1e-5)


@pytest.mark.parametrize(("resize", "shape"), [("crop", (35, 71)), ("squash", (49, 71))])
def test_pictures_of_another_size_are_brought_to_size_alike(resize, shape, tmp_path):
    model, _ = random_clip(f'image.resize="{resize}"')
    write(model, tmp_path / "theirs")
    assert read(tmp_path / "theirs").recipe.image == replace(model.recipe.image, mean=(0.4,) * 3)
    reader = transformers.CLIPImageProcessorPil.from_pretrained(tmp_path / "theirs")
    [array] = pictures(1, shape)
    pixels = reader(Image.fromarray(array), return_tensors="pt")["pixel_values"][0].permute(1, 2, 0)
    medium = loaded(model, tmp_path / "ours").use_as(ImageTextRetriever).images.modality
    torch.testing.assert_close(medium.features(medium.from_array(array)), pixels, atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(50))
def test_pictures_of_any_shape_have_the_pixels_that_hugging_face_cuts_out(seed):
    random = np.random.default_rng(seed)
    height, width, side = (int(number) for number in random.integers(1, 300, 3))
    picture = Image.fromarray(random.integers(0, 256, (height, width, 3)).astype(np.uint8))
    reader = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}, do_rescale=False, do_normalize=False
    )
    pixels = reader(picture, return_tensors="np")["pixel_values"][0].transpose(1, 2, 0)
    assert np.array_equal(np.asarray(cropped(picture, (side, side), Image.Resampling.BICUBIC)), pixels)


def edited(folder, tmp_path, edit=lambda tensors: tensors, text=None, vision=None, **settings):
    """A copy of a folder with other weights and settings."""
    tmp_path = tmp_path / "edited"
    tmp_path.mkdir()
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file(edit(load_file(folder / "model.safetensors")), tmp_path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text()) | settings
    config["text_config"] |= text or {}
    config["vision_config"] |= vision or {}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"text": {"hidden_act": "gelu"}}, "vision_config.hidden_act and text_config.hidden_act differ"),
        ({"text": {"layer_norm_eps": 1e-3}}, r"vision_config\.layer_norm_eps and text_config\.layer_norm_eps differ"),
        ({"vision": {"hidden_act": "mish"}}, "hidden_act is 'mish', but heedful has only relu"),
        ({"vision": {"patch_size": 0}}, "image_size and patch_size are not valid sizes"),
        ({"vision": {"image_size": 42}}, r"position_embedding.weight is \(26, 26\), but the model needs \(37, 26\)"),
        ({"model_type": "siglip"}, 'model_type is "siglip"'),
        ({"text": {"vocab_size": 999}}, "the embeddings have 999 rows"),
    ],
)
def test_settings_that_heedful_lacks_are_refused(theirs, tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        read(edited(theirs[0], tmp_path, **settings))


def test_all_weights_that_are_wrong_are_listed(theirs, tmp_path):
    def edit(tensors):
        rest = {name: value for name, value in tensors.items() if name != "visual_projection.weight"}
        return rest | {"text_projection.bias": torch.zeros(19)}

    with pytest.raises(InputError) as caught:
        read(edited(theirs[0], tmp_path, edit))
    assert str(caught.value).splitlines()[1:] == [
        "  missing visual_projection.weight (19, 26)",
        "  unexpected text_projection.bias (19,)",
    ]


def test_computed_positions_are_left_out(theirs, tmp_path):
    def edit(tensors):
        return tensors | {"text_model.embeddings.position_ids": torch.arange(61)[None]}

    assert list(read(edited(theirs[0], tmp_path, edit)).left_out) == ["text_model.embeddings.position_ids"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crop_size": 28}, "images are resized to 28 x 28 pixels, but the model reads 35 x 35"),
        ({"size": {"shortest_edge": 41}}, "images are scaled to 41 x 41 pixels before 35 x 35 are cropped"),
        ({"size": {"height": 41, "width": 41}}, "images are scaled to 41 x 41 pixels before 35 x 35 are cropped"),
        ({"do_normalize": False}, "do_normalize is false, but heedful always"),
        ({"rescale_factor": 1.0}, "rescale_factor is 1.0"),
    ],
)
def test_pictures_that_heedful_cannot_read_so_are_refused(theirs, tmp_path, settings, message):
    folder = edited(theirs[0], tmp_path)
    (folder / "preprocessor_config.json").write_text(json.dumps({"crop_size": {"height": 35, "width": 35}} | settings))
    with pytest.raises(InputError, match=message):
        read(folder)


def test_pictures_of_two_given_sides_are_squashed_even_where_their_middle_is_cut_out(theirs, tmp_path):
    folder = edited(theirs[0], tmp_path)
    sides = {"height": 35, "width": 35}
    for size, resize in ((sides, "squash"), (35, "crop"), ({"shortest_edge": 35}, "crop")):
        settings = {"do_center_crop": True, "crop_size": sides, "size": size}
        (folder / "preprocessor_config.json").write_text(json.dumps(settings))
        assert read(folder).recipe.image.resize == resize


def test_the_settings_of_pictures_stand_in_one_of_two_files(theirs, tmp_path):
    folder = edited(theirs[0], tmp_path)
    image = {"do_center_crop": False, "size": [35, 35], "image_mean": [0.1, 0.2, 0.3], "resample": 2}
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": image}))
    model = read(folder)
    assert (model.recipe.image.resize, model.recipe.image.mean) == ("squash", (0.1, 0.2, 0.3))
    assert (model.recipe.image.resample, model.notes) == ("bilinear", ())
    note = "preprocessor_config.json is missing: images are preprocessed as for a CLIP"
    assert read(theirs[0]).notes == (note,)


def test_all_keys_that_keep_a_model_from_being_a_clip_are_listed_at_once(tmp_path):
    model, _ = random_clip("model.text_causal=false", 'model.norm="post"', "model.embedding_norm=false")
    with pytest.raises(InputError, match="cannot be converted to a Hugging Face clip model") as caught:
        write(model, tmp_path / "theirs")
    assert str(caught.value).splitlines()[1:] == [
        '  model.norm = "pre", not "post"',
        "  model.embedding_norm = true, not false",
        "  model.text_causal = true, not false",
    ]
    model, _ = random_clip("image.class_token=false", 'model.pooling="mean"', "image.size=[35, 42]")
    with pytest.raises(InputError) as caught:
        write(model, tmp_path / "theirs")
    assert str(caught.value).splitlines()[1:] == [
        "  image.size = [35, 35], not [35, 42]",
        "  image.class_token = true, not false",
        '  model.pooling = "first", not "mean"',
    ]


def test_a_task_that_a_clip_is_not_for_is_refused(theirs):
    with pytest.raises(InputError, match='can be converted for "image_text_retrieval", not for "ranking"'):
        read(theirs[0], "ranking")
