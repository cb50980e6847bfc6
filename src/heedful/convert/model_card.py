"""Model cards (Mitchell et al. 2019): the README.md of an exported model, with metadata as on the Hugging Face Hub.

A card describes the model and how to load it. If the exported model has a README.md, its description and metadata are
kept: what its authors add to a card, such as a license, remains in all later exports.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from heedful.architectures import weights
from heedful.checkpoint.hub import is_hub_name, split_name
from heedful.checkpoint.load import LoadedModel
from heedful.checkpoint.run_layout import read_result
from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, Recipe
from heedful.metrics.translation import METRICS, Scoring, score
from heedful.storage.complete_folder import CARD, read_manifest
from heedful.storage.disk import read_small
from heedful.tasks import find_task
from heedful.tasks.specs import usage
from heedful.text.languages import NAMES, base_language, is_language
from heedful.text.tokenizer_pair import NoTokenizers
from heedful.wording import counted

FENCE = "---"  # before and after the metadata
LOADING = "## How to load it"
MAX_CARD = 1 << 20  # bytes

PIPELINE_TAGS = {  # of the Hugging Face Hub, by task
    "audio_classification": "audio-classification",
    "captioning": "image-to-text",
    "classification": "text-classification",
    "dialogue": "text-generation",
    "image_classification": "image-classification",
    "image_text_retrieval": "zero-shot-image-classification",
    "language_model": "text-generation",
    "masked_lm": "fill-mask",
    "masked_patches": "image-feature-extraction",
    "ranking": "sentence-similarity",
    "regression": "text-classification",
    "span_qa": "question-answering",
    "speech_recognition": "automatic-speech-recognition",
    "summarisation": "summarization",
    "tagging": "token-classification",
    "text_to_text": "text-generation",
    "translation": "translation",
    "video_classification": "video-classification",
    "word_vectors": "feature-extraction",
}
LIBRARIES = {"argos": "argostranslate", "safetensors": "heedful"} | dict.fromkeys(
    ("huggingface", "bert", "clip", "gpt2", "llama", "marian", "vit", "whisper"), "transformers"
)  # by format; the library of any other format has the format's name

HEEDFUL = """
import heedful

model = heedful.load("{place}")
"""
LLAMA_CPP = """
from llama_cpp import Llama

model = Llama("model.gguf")
print(model("Some text")["choices"][0]["text"])
"""
LAYOUTS = {  # Hugging Face layouts, by task or family
    "image_classification": "vit",
    "image_text_retrieval": "clip",
    "speech_recognition": "whisper",
    "encoder_decoder": "marian",
    "encoder": "bert",
    "decoder": "gpt2",
}
TRANSFORMERS = """
from transformers import {model}, {reader}

model = {model}.from_pretrained("{place}")
reader = {reader}.from_pretrained("{place}")
"""
AUTO_CLASSES = {  # of transformers, by format and task: the class of the model, and the class that reads its inputs
    "bert": ("AutoModel", "AutoTokenizer"),
    "bert masked_lm": ("AutoModelForMaskedLM", "AutoTokenizer"),
    "clip": ("AutoModel", "AutoProcessor"),
    "gpt2": ("AutoModelForCausalLM", "AutoTokenizer"),
    "llama": ("AutoModelForCausalLM", "AutoTokenizer"),
    "marian": ("AutoModelForSeq2SeqLM", "AutoTokenizer"),
    "vit": ("AutoModelForImageClassification", "AutoImageProcessor"),
    "whisper": ("AutoModelForSpeechSeq2Seq", "AutoProcessor"),
}
CTRANSLATE2 = {  # by family, or for speech
    "speech": """
from faster_whisper import WhisperModel

segments, _ = WhisperModel(".").transcribe("speech.wav")
print("".join(segment.text for segment in segments))
""",
    "encoder_decoder": """
import ctranslate2
import tokenizers

translator = ctranslate2.Translator(".")
source = tokenizers.Tokenizer.from_file("tokenizer.json")
target = tokenizers.Tokenizer.from_file("{target}tokenizer.json")
tokens = source.encode("Some text.", add_special_tokens=False).tokens
[result] = translator.translate_batch([tokens])
print(target.decode([target.token_to_id(token) for token in result.hypotheses[0]]))
""",
    "decoder": """
import ctranslate2
import tokenizers

generator = ctranslate2.Generator(".")
tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
tokens = ["<eos>", *tokenizer.encode("Some text", add_special_tokens=False).tokens]
[result] = generator.generate_batch([tokens], max_length=50, sampling_topk=10, include_prompt_in_result=False)
print(tokenizer.decode(result.sequences_ids[0]))
""",
    "encoder": """
import ctranslate2
import tokenizers

encoder = ctranslate2.Encoder(".")
tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
print(encoder.forward_batch([tokenizer.encode("Some text.").tokens]).last_hidden_state)
""",
}
SENTENCEPIECE = """
import sentencepiece

tokenizer = sentencepiece.SentencePieceProcessor(model_file="{name}.model")
print(tokenizer.encode("Some text.", out_type=str))
"""
ARGOS = """
import argostranslate.package
import argostranslate.translate

argostranslate.package.install_from_path("{name}.argosmodel")
print(argostranslate.translate.translate("Some text.", "{source}", "{target}"))
"""


def model_card(loaded: LoadedModel, to: str, precision: str, location: str = ".") -> str:
    """Return the text of the card of a model that is exported to the format `to`.

    `location` is where users load the model from: the card's folder, or a name on the Hub.
    """
    card = loaded.path / CARD
    own = read_small(card, MAX_CARD).decode("utf-8", errors="replace") if card.is_file() else ""
    metadata, text = split_card(own)
    metadata = metadata or "\n".join(metadata_of(loaded))
    # The library and the section on loading depend on the new format; the authors' text is kept.
    lines = [line for line in metadata.splitlines() if not line.startswith("library_name:")]
    metadata = "\n".join([*lines, f"library_name: {LIBRARIES.get(to, to)}"])
    text = text.partition(LOADING)[0].strip() or "\n".join(description(loaded))
    return f"{FENCE}\n{metadata}\n{FENCE}\n\n{text}\n\n{LOADING}\n\n{loading(loaded, to, precision, location)}"


def split_card(card: str) -> tuple[str, str]:
    """Split a model card into its metadata, without the fences, and its text. The metadata may be empty."""
    begin, fence, rest = card.partition(f"{FENCE}\n")
    metadata, end, text = rest.partition(f"\n{FENCE}\n")
    return (metadata, text) if fence and end and not begin.strip() else ("", card)


def metadata_of(loaded: LoadedModel) -> Iterator[str]:
    """Yield the lines of the metadata in YAML: languages, task, base model and scores, where known, and a tag."""
    recipe, scores = loaded.recipe, recorded_scores(loaded)
    if languages := languages_of(recipe):
        yield f"language: {json.dumps(languages)}"
    if recipe.task in PIPELINE_TAGS:
        yield f"pipeline_tag: {PIPELINE_TAGS[recipe.task]}"
    if (start := recipe.train.start) and is_hub_name(start):
        yield f"base_model: {json.dumps(split_name(start)[0])}"
    yield "tags: [heedful]"
    if scores:
        data = json.dumps(" ".join(file_names(recipe.data.valid)) or "validation", ensure_ascii=False)
        yield f"metrics: {json.dumps([*scores])}"
        yield "model-index:"
        yield f"- name: {json.dumps(recipe.name, ensure_ascii=False)}"
        yield "  results:"
        yield f"  - task: {{type: {PIPELINE_TAGS.get(recipe.task, recipe.task)}}}"
        yield f"    dataset: {{type: validation, name: {data}}}"
        yield "    metrics:"
        for name, value in scores.items():
            yield f"    - {{type: {name}, value: {value:.4g}}}"


def description(loaded: LoadedModel) -> Iterator[str]:
    """Yield the lines of the description: what the model does, its sizes, data, scores and limitations."""
    recipe, manifest = loaded.recipe, read_manifest(loaded.path)
    start = recipe.train.start or ""
    names = [NAMES.get(base_language(code), code) for code in languages_of(recipe)]
    parameters = sum(value.numel() for value in weights(loaded.model).values())
    rows = {
        "task": ", ".join([recipe.task.replace("_", " "), *names]),
        "model": f"{recipe.model.architecture}: {recipe.model.shape()}; {parameters:,} parameters",
        "tokenizer": tokenizer_of(loaded),
        "training data": ", ".join(name for corpus in recipe.data.train for name in file_names(corpus)),
        "started from": start if is_hub_name(start) else Path(start).name,
        "updates": f"{manifest.facts['update']:,}" if "update" in manifest.facts else "",
    }
    yield from (f"# {recipe.name}", "", "| | |", "| --- | --- |")
    yield from (f"| {key} | {value} |" for key, value in rows.items() if value)
    yield ""
    if scores := recorded_scores(loaded):
        yield from (
            "## Scores on the validation set",
            "",
            "| score | value | sacrebleu signature |",
            "| --- | --- | --- |",
        )
        yield from (f"| {name} | {value:.4g} | {signature(name, loaded)} |" for name, value in scores.items())
        yield from ("", "The checkpoint was selected by these scores, so scores on a test set may be lower.", "")
    yield from ("## Limits", "")
    if recipe.data.modality == "text":
        pairs = FAMILIES[recipe.model.family].pairs
        tokens = getattr(recipe.model, "max_positions", 0) if pairs else recipe.data.max_length
        yield f"- It reads at most {counted(tokens, 'tokens')} at once." if tokens else ""
    yield "- Its outputs can be wrong, and can repeat errors and biases in its training data."


def tokenizer_of(loaded: LoadedModel) -> str:
    """Describe the tokenizers of a model, if it has any: their kind and vocabulary sizes."""
    if isinstance(loaded.tokenizers, NoTokenizers):
        return ""
    source, target = loaded.tokenizers.sizes
    sizes = f"{source:,} tokens" if loaded.tokenizers.joint else f"{source:,} and {target:,} tokens"
    return f"{loaded.tokenizers.source.config.kind}, {sizes}"


def languages_of(recipe: Recipe) -> list[str]:
    """List the languages in a recipe, without unknown ones."""
    codes = (recipe.data.source_language, recipe.data.target_language)
    return list(dict.fromkeys(code for code in codes if is_language(code)))


def file_names(corpus: CorpusConfig | None) -> list[str]:
    """List the file names of a corpus, without their folders."""
    sides = (corpus.source, corpus.target) if corpus else ()
    return [Path(side).name for side in sides if side is not None]


def recorded_scores(loaded: LoadedModel) -> dict[str, float]:
    """Read the validation scores of the final model of a run. Any other model has none."""
    result = read_result(loaded.path.parent) if loaded.path.name == "model" else {}
    # Scores of another update do not belong to these weights.
    if not result or result.pop("update") != read_manifest(loaded.path).facts.get("update"):
        return {}
    return {name: value for name, value in result.items() if isinstance(value, float | int)}


def signature(name: str, loaded: LoadedModel) -> str:
    """Return sacrebleu's signature of a validation score, without the version, which a run does not record."""
    if name not in METRICS:
        return ""
    language, lowercase = loaded.recipe.data.target_language, loaded.tokenizers.target.config.lowercase
    # The signature depends on the settings, not on the texts.
    [result] = score(["a"], [["a"]], Scoring(metrics=(name,), language=language, lowercase=lowercase))
    return f"`{result.signature.partition('|version:')[0]}`".replace("|", r"\|")


def loading(loaded: LoadedModel, to: str, precision: str, location: str) -> str:
    """Return instructions for loading the model in a format: a command, or Python code to run in the card's folder."""
    recipe, joint = loaded.recipe, isinstance(loaded.tokenizers, NoTokenizers) or loaded.tokenizers.joint
    lines = f"Written by `heedful export --to {to}`, with weights in {precision}."
    code = ""
    if to == "huggingface":
        to = LAYOUTS.get(recipe.task) or LAYOUTS[recipe.model.family]
    if to == "safetensors":
        lines += f" Use it with `{usage(find_task(recipe.task).spec, location)}`, or in Python:"
        code = HEEDFUL.format(place=location)
    elif to == "ctranslate2":
        kind = "speech" if recipe.data.modality == "audio" else recipe.model.family
        code = CTRANSLATE2.get(kind, "").format(target="" if joint else "target/")
    elif to == "onnx":
        lines += " `run.py` shows how to run it: `python run.py INPUT`, with a text or a file name."
    elif to == "gguf":
        code = LLAMA_CPP
    elif to == "sentencepiece":
        lines = "The tokenizer alone, written by `heedful export --to sentencepiece`."
        code = SENTENCEPIECE.format(name="sentencepiece" if joint else "source")
    elif to == "argos":
        # Imported here: argos_export imports exporter, which imports this module.
        from heedful.convert.argos_export import argos_language, package_name

        (source, _), (target, _) = map(argos_language, (recipe.data.source_language, recipe.data.target_language))
        code = ARGOS.format(name=package_name(recipe), source=source, target=target)
    elif to in AUTO_CLASSES:
        model, reader = AUTO_CLASSES.get(f"{to} {recipe.task}", AUTO_CLASSES[to])
        code = TRANSFORMERS.format(model=model, reader=reader, place=split_name(location)[0])
    return f"{lines}\n\n```python{code}```\n" if code else f"{lines}\n"
