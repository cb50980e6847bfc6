"""Decoders and encoders of the user's own: those of the how-to page, and the errors of classes that cannot work."""

import re
import sys
from pathlib import Path

import pytest
import torch

import heedful
from heedful.architectures import LanguageModel
from heedful.config.load import make_recipe, recipe_to_dict
from heedful.config.schema import GenerateConfig, Recipe
from heedful.errors import InputError
from heedful.nn.masks import AttentionMask
from heedful.predictors.generator import GenerationRequest
from heedful.tasks.model_size import count_model
from heedful.training.preflight import check_model, preflight
from interrupted import train
from shown_modules import averages, normed
from toy_tasks import recipe, write_text

SHAPE = {"d_model": 16, "dropout": 0.0}
SHOWN = {
    "normed:NormedDecoder": normed.NormedConfig(
        architecture="normed:NormedDecoder", heads=2, d_ff=23, decoder_layers=2, positions="rotary", **SHAPE
    ),
    "averages:AveragingDecoder": averages.AveragingConfig(architecture="averages:AveragingDecoder", **SHAPE),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text"))


def of_architecture(text: Path, name: str, task: str = "language_model", **model: object) -> Recipe:
    """The toy recipe of a task with the model of an architecture."""
    whole = recipe_to_dict(recipe(task, text))
    whole["model"] = {"architecture": name, "d_model": 16, **model}
    whole["train"]["batch_tokens"] = 250
    return make_recipe(whole)


@pytest.fixture(params=SHOWN)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    torch.manual_seed(3)
    return LanguageModel(SHOWN[request.param], 29).eval()


@torch.no_grad()
def test_a_shown_decoder_computes_step_by_step_what_it_computes_at_once(model):
    ids = torch.randint(4, 29, (3, 11))
    at_once = model(ids, torch.ones_like(ids, dtype=torch.bool))
    state = model.start(ids[:, :5], torch.ones(3, 5, dtype=torch.bool))
    for t in range(4, 11):
        torch.testing.assert_close(state.step(ids[:, t]), at_once[:, t], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_padding_changes_nothing_in_a_shown_decoder(model):
    ids = torch.randint(4, 29, (2, 7))
    alone = model(ids, torch.ones_like(ids, dtype=torch.bool))
    padding = torch.zeros(2, 3, dtype=torch.long)
    for order in ([padding, ids], [ids, padding]):
        padded = torch.cat(order, dim=1)
        torch.testing.assert_close(model(padded, padded != 0)[padded != 0], alone.flatten(0, 1), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_documents_in_one_row_do_not_see_each_other_in_a_shown_decoder(model):
    ids = torch.randint(4, 29, (1, 9))
    real = torch.ones_like(ids, dtype=torch.bool)
    documents = torch.tensor([[0] * 4 + [1] * 5])
    packed = model.output(model.hidden(ids, AttentionMask(real, 9, causal=True).within(documents)))
    torch.testing.assert_close(packed[:, 4:], model(ids[:, 4:], real[:, 4:]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", SHOWN)
def test_a_shown_decoder_is_trained_and_generates(name, text, tmp_path):
    train(of_architecture(text, name), tmp_path / "run")
    request = GenerationRequest("T3a T3b", GenerateConfig(max_tokens=3, temperature=0.0))
    (found,) = heedful.load(tmp_path / "run", "cpu", task="language_model").generate([request])
    assert len(found.tokens) <= 3


OWN = """
from dataclasses import dataclass

import torch
from torch import nn

from heedful.config.schema import ArchitectureConfig, ModelConfig
from heedful.architectures.transformer.model import DecoderOnly, EncoderOnly


class Plain(DecoderOnly):
    pass


class Reader(EncoderOnly):
    pass


@dataclass(frozen=True, kw_only=True)
class FewKeys(ArchitectureConfig):
    layers: int = 2


class Narrow(DecoderOnly):
    Config = FewKeys


class Misnamed(DecoderOnly):
    def __init__(self, config, embedding):
        super().__init__(config, embedding)
        self.extra = nn.Linear(config.d_model, config.nothing)


class Arguments(DecoderOnly):
    def __init__(self, config):
        super().__init__(config, None)


@dataclass(frozen=True, kw_only=True)
class Decoding(ModelConfig):
    family: str = "decoder"


class Foreign(nn.Module):
    Config = Decoding

    def __init__(self, config, embedding):
        super().__init__()
        self.embedding = embedding


class Valued(DecoderOnly):
    def __init__(self, config, embedding):
        super().__init__(config, embedding)
        self.rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]


class Crooked(DecoderOnly):
    def __init__(self, config, embedding):
        super().__init__(config, embedding)
        self.stack.forward = lambda x, mask, cache=None: x[:, :, :3]


class Unvalidated(DecoderOnly):
    def __init__(self, config, embedding):
        super().__init__(config, embedding)

    def encode_vectors(self, x, padding_mask, segments=None):
        if not self.training:
            raise ValueError("not while it is validated")
        return super().encode_vectors(x, padding_mask, segments)
"""


def line_of(code: str) -> int:
    """The number of the line of the module that holds some code."""
    return next(number for number, line in enumerate(OWN.split("\n"), start=1) if code in line)


DECODER = {"family": "decoder", "heads": 2, "d_ff": 23, "decoder_layers": 1}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's own, which can be imported."""
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    return tmp_path


BUILT_WRONG = {  # annotations are checked in tests, which is another error than a user's
    "Narrow": "AttributeError: 'FewKeys' object has no attribute 'scale_embeddings'; a key of .* is missing: add "
    "scale_embeddings to the class FewKeys|TypeCheckError: .*TextModelConfig",
    "Misnamed": rf"AttributeError: .* 'nothing' \(own\.py, line {line_of('config.nothing')}\); a key of",
    "Arguments": r"TypeError: Arguments\.__init__\(\) takes 2 positional arguments",
    "Valued": rf"RuntimeError: .*meta.*\(own\.py, line {line_of('rate.item()')}\); the model is first built",
}


@pytest.mark.parametrize("task", ["language_model", "classification", "regression", "ranking"])
@pytest.mark.parametrize("name", BUILT_WRONG)
def test_a_class_that_cannot_be_built_is_an_error_that_names_key_and_line_before_data_is_read(name, task, own):
    model = {"family": "decoder"} if name == "Narrow" else DECODER
    if task == "ranking":
        values = {"task": task, "data": {"train": [{"source": "missing.tsv"}], "root": str(own)}}
        settings = make_recipe(values | {"model": {"architecture": f"own:{name}", "d_model": 16, **model}})
    else:
        settings = of_architecture(own, f"own:{name}", task, **model)
    with pytest.raises(InputError) as error:
        preflight(settings)
    _, problem, *missing = str(error.value).split("\n")
    assert re.search(f'model.architecture = "own:{name}": the model cannot be built: (?:{BUILT_WRONG[name]})', problem)
    assert missing


def test_a_class_that_is_not_a_backbone_is_refused(own, text):
    with pytest.raises(
        InputError,
        match=r"(?s)own:Foreign\": (?:it does not make a heedful model; let the|.*\.backbone\.Backbone)",
    ):
        preflight(of_architecture(text, "own:Foreign", **DECODER))


def test_the_check_and_training_end_in_the_same_message(own, text):
    settings = of_architecture(text, "own:Misnamed", **DECODER)
    with pytest.raises(InputError) as checked:
        preflight(settings)
    with pytest.raises(InputError) as trained:
        train(settings, own / "run")
    assert str(trained.value) == str(checked.value)


@pytest.mark.parametrize(("name", "what"), [("Crooked", "process a batch"), ("Unvalidated", "be validated")])
def test_an_error_of_a_pass_names_the_key(name, what, own, text):
    task = "language_model" if name == "Crooked" else "classification"
    with pytest.raises(InputError, match=f'model.architecture = "own:{name}": it cannot {what}: '):
        train(of_architecture(text, f"own:{name}", task, **DECODER), own / "run")


@pytest.mark.parametrize("broken", ["x = = 1", "x = nothing", "import nothing_that_is_there", "raise ValueError('no')"])
def test_a_module_that_cannot_be_imported_is_an_error(broken, own, text):
    (own / "own.py").write_text(f"import torch\n{broken}\n")
    with pytest.raises(InputError, match="own:Plain: the module own cannot be imported"):
        of_architecture(text, "own:Plain", **DECODER)


@pytest.mark.parametrize("named", [{}, {"family": "decoder"}, {"family": "encoder"}, {"family": "encoder_decoder"}])
@pytest.mark.parametrize("task", ["language_model", "classification", "masked_lm"])
@pytest.mark.parametrize("name", ["own:Plain", "own:Reader", "gated:GatedRecurrent", "text_cnn"])
def test_messages_about_families_lead_to_a_recipe_that_works_or_say_that_none_does(name, task, named, own, text):
    seen, complaint = [], problem_of(name, task, named, text)
    while remedy := re.search(r'(?:set model\.family =|did you mean) "(\w+)"', complaint):
        seen.append(remedy[1])
        assert len(seen) == 1, f"the messages send the user in a circle: {seen}"
        complaint = problem_of(name, task, {"family": remedy[1]}, text)
    possible = task in ABLE.get(name, ())
    assert bool(complaint) != possible
    assert possible or "another task" in complaint or "or task = " in complaint


ABLE = {
    "own:Plain": ("language_model", "classification"),
    "own:Reader": ("classification", "masked_lm"),
    "text_cnn": ("classification",),
}


def problem_of(name: str, task: str, named: dict[str, str], text: Path) -> str:
    """The message about the model of a recipe; empty if there is none."""
    heads = {"heads": 2} if name.startswith("own") else {}
    try:
        check_model(of_architecture(text, name, task, **heads, **named))
    except InputError as error:
        return str(error)
    return ""


def test_a_count_of_parameters_names_the_key_as_well(own, text):
    settings = of_architecture(text, "own:Narrow", family="decoder")
    with pytest.raises(InputError, match=r'model\.architecture = "own:Narrow": the model cannot be built'):
        count_model(settings, 97, 97)
