"""Transformers in CTranslate2's format compute what torch.nn.Transformer does, with positions by their formula."""

import math

import numpy as np
import pytest
import torch
from model_bin import written
from torch import nn

from heedful.checkpoint import load_model, write_model
from heedful.config.schema import DecodeConfig
from heedful.convert import FORMATS, Model
from heedful.errors import InputError
from heedful.predictors.translator import Translator
from heedful.search.beam import search
from heedful.text.pipeline import BOS, EOS

D_MODEL, D_FF, HEADS, SOURCE, TARGET = 24, 37, 8, 29, 23
SIZES = {"encoder": SOURCE, "decoder": TARGET}
LETTERS = [chr(0x3B1 + i) for i in range(25)]
SPECIALS = ["<blank>", "<s>", "</s>"]
PARTS = {"self_attn.in_proj_": "self_attention/linear_0/", "self_attn.out_proj.": "self_attention/linear_1/"}
PARTS |= {"multihead_attn.out_proj.": "attention/linear_2/", "linear1.": "ffn/linear_0/", "linear2.": "ffn/linear_1/"}
NORMS = {
    "encoder": ["self_attention/layer_norm/", "ffn/layer_norm/"],
    "decoder": ["self_attention/layer_norm/", "attention/layer_norm/", "ffn/layer_norm/"],
}
ENDINGS = {"weight": "gamma", "bias": "beta"}


class Reference(nn.Module):
    """The same model from torch's own parts."""

    def __init__(self):
        super().__init__()
        options = {"dropout": 0.0, "layer_norm_eps": 1e-6, "batch_first": True, "norm_first": True}
        block = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, **options)
        norm = nn.LayerNorm(D_MODEL, eps=1e-6)
        encoder = nn.TransformerEncoder(block, 2, norm, enable_nested_tensor=False)
        block = nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, **options)
        decoder = nn.TransformerDecoder(block, 3, nn.LayerNorm(D_MODEL, eps=1e-6))
        self.core = nn.ModuleDict({"encoder": encoder, "decoder": decoder})
        self.embeddings = nn.ModuleDict({side: nn.Embedding(size, D_MODEL) for side, size in SIZES.items()})
        self.projection = nn.Linear(D_MODEL, TARGET)
        for parameter in self.parameters():
            parameter.data = 0.3 * torch.randn_like(parameter) + (parameter.data if parameter.ndim == 1 else 0)

    def embed(self, side, ids):
        rates = [10000 ** (-i / (D_MODEL / 2 - 1)) for i in range(D_MODEL // 2)]
        codes = [[f((p + 1) * r) for f in (math.sin, math.cos) for r in rates] for p in range(ids.size(1))]
        return self.embeddings[side](ids) * math.sqrt(D_MODEL) + torch.tensor(codes)

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        memory = self.core["encoder"](self.embed("encoder", source))
        return self.projection(self.core["decoder"](self.embed("decoder", target), memory, tgt_mask=causal))


def their_variables(reference):
    found = {f"{side}/embeddings/weight": reference.embeddings[side].weight for side in SIZES}
    found |= {f"decoder/projection/{name}": value for name, value in reference.projection.named_parameters()}
    for name, value in reference.core.named_parameters():
        side, place, *rest = name.split(".")
        if place == "norm":
            found[f"{side}/layer_norm/{ENDINGS[rest[0]]}"] = value
            continue
        layer, rest = f"{side}/layer_{rest[0]}/", ".".join(rest[1:])
        if rest.startswith("norm"):
            found[layer + NORMS[side][int(rest[4]) - 1] + ENDINGS[rest[6:]]] = value
        elif rest.startswith("multihead_attn.in_proj_"):
            found[f"{layer}attention/linear_0/{rest[23:]}"] = value[:D_MODEL]
            found[f"{layer}attention/linear_1/{rest[23:]}"] = value[D_MODEL:]
        else:
            (start,) = (start for start in PARTS if rest.startswith(start))
            found[layer + PARTS[start] + rest[len(start) :]] = value
    return {name: ("float32", value.detach().numpy()) for name, value in found.items()}


def save(folder, variables, spec="TransformerBase", words=SIZES):
    folder.mkdir()
    for side, name in (("encoder", "source"), ("decoder", "target")):
        vocabulary = [*SPECIALS, *LETTERS][: words[side] - 1]  # the last row is that of unknown words
        (folder / f"{name}_vocabulary.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "model.bin").write_bytes(written(variables, spec=spec, version=2, revision=2))
    return folder


@pytest.fixture(scope="module")
def reference():
    torch.manual_seed(5)
    return Reference().eval()


@pytest.fixture(scope="module")
def converted(reference, tmp_path_factory) -> Model:
    folder = save(tmp_path_factory.mktemp("opennmt") / "theirs", their_variables(reference))
    return FORMATS["opennmt"].read(folder)


@pytest.fixture(scope="module")
def ours(converted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("opennmt") / "ours"
    write_model(folder, converted.recipe, converted.tokenizers, converted.weights)
    return load_model(folder)


def old_ids(ids, size):
    """heedful's ids 0 to 3 are <blank>, the unknown word, <s> and </s>."""
    return torch.tensor([0, size - 1, *range(1, size - 1)])[ids]


def test_every_token_has_its_old_probability(reference, ours):
    order = old_ids(torch.arange(TARGET), TARGET)
    for length in (1, 7, 13):
        letters, target = torch.randint(4, SOURCE - 1, (1, length)), torch.randint(4, TARGET - 1, (1, 11))
        target[:, 0] = BOS
        source = torch.cat([letters, torch.tensor([[EOS]])], dim=1)  # which they do not have, and ours does not see
        with torch.inference_mode():
            expected = reference(old_ids(letters, SOURCE), old_ids(target, TARGET))
            found = ours.model(source, source >= 0, target, target >= 0)
        assert expected.std() > 0.5
        torch.testing.assert_close(found, expected[..., order], atol=1e-5, rtol=0)


def test_a_translation_has_the_score_of_its_letters(reference, ours):
    translator = ours.use_as(Translator)
    assert translator.config.penalty == "average"
    for text in ("α ω β", "γ", "δ ε ζ η θ ξ"):
        [translation] = translator.translate_lines([text])
        found = translation.alternatives[0].hypothesis
        letters = torch.tensor([ours.tokenizers.source.encode(text)])
        said = torch.tensor([[BOS, *found.tokens, EOS]])
        with torch.inference_mode():
            logits = reference(old_ids(letters, SOURCE), old_ids(said[:, :-1], TARGET)).log_softmax(-1)
        scores = logits[0].gather(1, old_ids(said[0, 1:, None], TARGET))[:, 0].tolist()[: len(found.token_scores)]
        assert found.token_scores == pytest.approx(scores, abs=1e-4)
        assert found.score == pytest.approx(sum(scores) / len(scores), abs=1e-4)


def test_the_beam_begins_at_the_beginning(ours):
    source = torch.tensor([[7, 11, 5, EOS]])
    with torch.inference_mode():
        found = search(ours.model.start(source, source >= 0), [17], DecodeConfig(beam=3, n_best=3))[0]
    assert len(found) == 3
    assert not {BOS, 0} & {token for hypothesis in found for token in hypothesis.tokens}


def test_wrong_weights_are_listed(reference, tmp_path):
    variables = their_variables(reference)
    del variables["encoder/layer_1/self_attention/linear_0/bias"]
    variables["decoder/extra/weight"] = variables["decoder/projection/bias"]
    with pytest.raises(InputError) as caught:
        FORMATS["opennmt"].read(save(tmp_path / "theirs", variables))
    assert str(caught.value).splitlines()[1:] == [
        "  missing encoder.layer_1.self_attention.linear_0.bias (72,)",
        "  unexpected decoder.extra.weight (23,)",
    ]


def test_other_models_are_refused(tmp_path):
    with pytest.raises(InputError, match="contains a WhisperSpec, but heedful reads only"):
        FORMATS["opennmt"].read(save(tmp_path / "whisper", {}, spec="WhisperSpec"))
    with pytest.raises(InputError, match=r"has no encoder\.layer_0\.ffn\.linear_0\.weight and no"):
        FORMATS["opennmt"].read(save(tmp_path / "nothing", {}))


def test_what_stands_around_a_text_is_heeded(reference, tmp_path):
    folder = save(tmp_path / "theirs", their_variables(reference))
    (folder / "config.json").write_text('{"add_source_eos": true, "decoder_start_token": "<s>"}')
    assert FORMATS["opennmt"].read(folder).recipe.model.source_eos
    for setting in ('{"decoder_start_token": "</s>"}', '{"add_source_bos": true}'):
        (folder / "config.json").write_text(setting)
        with pytest.raises(InputError, match=rf"config\.json: .*{setting[1:-1]}.*, but heedful supports only"):
            FORMATS["opennmt"].read(folder)


def test_vocabularies_have_a_word_a_row(reference, tmp_path):
    variables = their_variables(reference)
    longer = save(tmp_path / "longer", variables, words=SIZES | {"decoder": 27})
    with pytest.raises(InputError, match="26 words do not match the 23 rows"):
        FORMATS["opennmt"].read(longer)
    variables["encoder/embeddings/weight"] = ("float32", np.ones((31, D_MODEL), np.float32))
    shorter = save(tmp_path / "shorter", variables)
    with pytest.raises(InputError, match="28 tokens up to id 27, but the embeddings have 31 rows"):
        FORMATS["opennmt"].read(shorter)


def test_a_vocabulary_whose_lines_end_as_on_windows_is_refused(reference, tmp_path):
    folder = save(tmp_path / "theirs", their_variables(reference))
    file = folder / "target_vocabulary.txt"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(InputError, match="has no <s> and no </s>, which begin and end"):
        FORMATS["opennmt"].read(folder)


@pytest.mark.parametrize("name", ["encoder/embeddings/weight", "encoder/layer_0/ffn/linear_0/weight"])
@pytest.mark.parametrize("value", [np.float32(1), np.ones(D_MODEL, np.float32)])
def test_a_weight_of_another_shape_is_an_error_of_the_folder(reference, tmp_path, name, value):
    folder = save(tmp_path / "theirs", their_variables(reference) | {name: ("float32", value)})
    with pytest.raises(InputError, match=str(folder)):
        FORMATS["opennmt"].read(folder)
