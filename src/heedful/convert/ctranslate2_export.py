"""Write Transformers in the format of CTranslate2, an inference engine for CPUs and GPUs, and check what was written.

The folder has model.bin, config.json and the vocabulary, which `ctranslate2.Translator` (encoder-decoders), `Generator`
(GPTs) and `Encoder` (BERTs) open, and tokenizer.json, which the library `tokenizers` and `transformers` open.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.config.families import FAMILIES
from heedful.config.schema import ModelConfig, Recipe
from heedful.convert.model import Model, check_empty, count
from heedful.convert.opennmt import CROSS_ATTENTION, FEED_FORWARD, SELF_ATTENTION
from heedful.convert.weights import Names, Weights
from heedful.data.readers.corpus import read_pairs
from heedful.data.readers.documents import read_documents
from heedful.errors import InputError
from heedful.nn.positions import Relative, sinusoids
from heedful.predictors.generator import Generator
from heedful.predictors.outputs import TokenScores
from heedful.predictors.predictor import AnyPredictor
from heedful.predictors.translator import Translator
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.text.hugging_face import to_hugging_face
from heedful.text.pipeline import BOS, EOS, UNK
from heedful.wording import counted

PRECISIONS = ("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16")
PROMPT, CONTINUATION = 30, 50  # characters of a prompt and tokens after it, to compare two GPTs
TEXTS = 200  # that an export is compared with
ROUNDING = 1e-3  # of log-probabilities in float32
MISSING = 'the export needs ctranslate2: pip install "heedful[ctranslate2]"'

GATED = {"feed_forward.gate": "ffn.linear_0", "feed_forward.up": "ffn.linear_0_noact"}
ENCODER_BLOCK, DECODER_BLOCK = SELF_ATTENTION | FEED_FORWARD, SELF_ATTENTION | CROSS_ATTENTION | FEED_FORWARD
# For each family: the stacks by their names in heedful and in CTranslate2, their blocks, and what is around the stacks.
STACKS = {
    "encoder_decoder": {"encoder": ("encoder", ENCODER_BLOCK), "decoder": ("decoder", DECODER_BLOCK)},
    "encoder": {"backbone.stack": ("encoder", ENCODER_BLOCK)},
    "decoder": {"backbone.stack": ("decoder", ENCODER_BLOCK)},
}
AROUND = {
    "encoder_decoder": {
        "source_embedding": "encoder.embeddings_0",
        "target_embedding": "decoder.embeddings",
        "output": "decoder.projection",
    },
    "encoder": {"backbone.embedding": "encoder.embeddings_0", "backbone.segments.table": "encoder.embeddings_1"},
    "decoder": {"backbone.embedding": "decoder.embeddings", "output": "decoder.projection"},
}
HEADS = r"(?:transform|output|next_sentence)\..*"  # of a BERT: ctranslate2.Encoder returns hidden states


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a Transformer as a model folder of CTranslate2.

    Args:
        model: An encoder-decoder, a GPT or a BERT.
        folder: The folder to write, new or empty.
        precision: Type of the stored weights, one of `PRECISIONS`.

    Returns:
        The number of values in the weights.

    Raises:
        InputError: CTranslate2 cannot express the model, or the package is not installed.
        RunError: The folder cannot be written.
    """
    check_empty(folder)
    config, positions = model.recipe.model, model.recipe.model.max_positions
    if problems := refusals(config):
        raise InputError("\n  ".join(["CTranslate2 cannot express this model:", *problems]))
    spec = specification(config, model.weights, positions)
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        family = config.family
        to_hugging_face(model.tokenizers.source, writer.path, family, positions)
        source = target = vocabulary(writer.path)
        if not model.tokenizers.joint:
            to_hugging_face(model.tokenizers.target, writer.path / "target", family, positions)
            target = vocabulary(writer.path / "target")

        if family == "encoder_decoder":
            spec.register_source_vocabulary(source)
            spec.register_target_vocabulary(target)
            spec.config.decoder_start_token = target[BOS]
            spec.config.add_source_eos = config.source_eos
        else:
            spec.register_vocabulary(source)
        spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = target[UNK], target[BOS], target[EOS]
        spec.config.add_attribute("layer_norm_epsilon", config.norm_eps)

        spec.validate()
        spec.optimize(quantization=None if precision == "float32" else precision)
        spec.save(str(writer.path))
    return count(model.weights)


def refusals(config: Any) -> list[str]:
    """List the settings of a model that CTranslate2 cannot express, each with the values that it can."""
    if config.architecture != ModelConfig.architecture:
        return [f'model.architecture = "{config.architecture}": must be "{ModelConfig.architecture}"']
    encoder = config.family != "decoder"
    problems = {
        'model.positions = "alibi": must be "rotary", "relative", "learned" or "sinusoidal" in an encoder': (
            encoder and config.positions == "alibi"
        ),
        f"model.d_v = {config.d_v}: must be equal to model.d_k": config.d_v
        not in (None, config.d_k or config.d_model // config.heads),
        f"model.segments = {config.segments}: must be 0, or 2 in an encoder": (
            config.segments not in ((0, 2) if config.family == "encoder" else (0,))
        ),
    }
    return [problem for problem, holds in problems.items() if holds]


def vocabulary(folder: Path) -> list[str]:
    """Read the tokens of a tokenizer.json in the order of their ids."""
    definition = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    pieces = definition["model"]["vocab"]
    ids = dict(pieces) if isinstance(pieces, dict) else {piece: i for i, (piece, _) in enumerate(pieces)}
    ids |= {token["content"]: token["id"] for token in definition["added_tokens"]}
    return sorted(ids, key=ids.__getitem__)


def specification(config: ModelConfig, weights: Weights, positions: int) -> Any:
    """Build CTranslate2's specification of a model, with its weights in float32."""
    try:
        from ctranslate2.specs import transformer_spec
        from ctranslate2.specs.common_spec import Activation, EmbeddingsMerge
    except ImportError as error:
        raise InputError(MISSING) from error
    activations = {
        "relu": Activation.RELU,
        "gelu": Activation.GELU,
        "gelu_tanh": Activation.GELUTanh,
        "quick_gelu": Activation.GELUSigmoid,
        "silu": Activation.SWISH,
        "swiglu": Activation.SWISH,
    }
    options: dict[str, Any] = {
        "num_heads": config.heads,
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.normalization == "rms",
        "layernorm_embedding": config.embedding_norm,
        "num_heads_kv": config.kv_heads,
        "head_dim": config.d_k,
        "relative_attention_bias": config.positions == "relative",
    }
    if config.positions == "rotary":
        # Dimension i is paired with i + K/2, which CTranslate2 calls not interleaved.
        options |= {"rotary_dim": 0, "rotary_interleave": False}

    encoder = transformer_spec.TransformerEncoderSpec(
        config.encoder_layers,
        num_source_embeddings=2 if config.segments else 1,
        embeddings_merge=EmbeddingsMerge.ADD,
        **options,
    )
    decoder = transformer_spec.TransformerDecoderSpec(
        config.decoder_layers,
        with_encoder_attention=config.family == "encoder_decoder",
        alibi=config.positions == "alibi",
        **options,
    )
    spec = {
        "encoder_decoder": lambda: transformer_spec.TransformerSpec(encoder, decoder),
        "encoder": lambda: transformer_spec.TransformerEncoderModelSpec(encoder),
        "decoder": lambda: transformer_spec.TransformerDecoderModelSpec(decoder),
    }[config.family]()

    stacks = {"encoder": encoder, "decoder": decoder}
    for ours, (name, _) in STACKS[config.family].items():
        stacks[name].scale_embeddings = config.scale_embeddings
        set_positions(stacks[name], config, weights.get(f"{ours}.positions.table.weight"), positions)
    for name, value in their_weights(config, weights).items():
        set_variable(spec, name, value)
    return spec


def their_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Weights by CTranslate2's names, without position tables; norms without a bias get one of zeros."""
    feed_forward = GATED if config.activation == "swiglu" else {}
    table = dict(AROUND[config.family])
    for ours, (theirs, block) in STACKS[config.family].items():
        table |= {f"{ours}.norm": f"{theirs}.layer_norm", f"{ours}.embedding_norm": f"{theirs}.layernorm_embedding"}
        table |= {f"{ours}.blocks.#.{o}": f"{theirs}.layer_#.{t}" for o, t in (block | feed_forward).items()}
    left_out = r".*\.positions\.table\.weight" + (f"|{HEADS}" if config.family == "encoder" else "")
    # A tied matrix is stored once here; CTranslate2 finds equal matrices by itself.
    copies = {"target_embedding.weight": "source_embedding.weight", "output.weight": "target_embedding.weight"}
    if config.family == "decoder":
        copies = {"output.weight": "backbone.embedding.weight"}
    present = {name: value for name, value in weights.items() if not re.fullmatch(left_out, name)}
    for copy, original in copies.items():
        if original in present:
            present.setdefault(copy, present[original])

    if config.segments and config.scale_embeddings:
        # CTranslate2 scales the sum of both embeddings; only that of tokens is scaled here.
        name = "backbone.segments.table.weight"
        present[name] = present[name] / config.d_model**0.5

    variables = {}
    for name, value in Names(table).theirs(present).items():
        path, _, kind = name.rpartition(".")
        kind = {"weight": "gamma", "bias": "beta"}[kind] if "norm" in path.split(".")[-1] else kind
        variables[f"{path}.{kind}"] = value.detach().float().numpy()
    if config.normalization == "layer":
        gammas = [name for name in variables if name.endswith("gamma")]
        betas = {name.removesuffix("gamma") + "beta": np.zeros_like(variables[name]) for name in gammas}
        variables = betas | variables
    return variables


def set_positions(stack: Any, config: ModelConfig, table: Tensor | None, positions: int) -> None:
    """Set what a stack of CTranslate2 knows about positions."""
    if config.positions == "relative" and table is not None:
        for layer in stack.layer:
            layer.self_attention.relative_attention_bias = table.detach().float().numpy()
            layer.self_attention.relative_attention_max_distance = np.int32(Relative.FARTHEST)
    elif config.positions in ("sinusoidal", "learned", "none"):
        # Without a table CTranslate2 adds sinusoids, so a model without positions gets one of zeros.
        if config.positions == "sinusoidal":
            table = sinusoids(positions, config.d_model)
        zeros = np.zeros((positions, config.d_model), dtype=np.float32)
        stack.position_encodings.encodings = zeros if table is None else table.detach().float().numpy()


def set_variable(spec: Any, name: str, value: np.ndarray) -> None:
    """Set a weight in a specification by its name, such as encoder.layer_0.self_attention.linear_0.weight."""
    *path, last = name.split(".")
    for part in path:
        member, _, number = part.rpartition("_")
        listed = number.isdigit() and isinstance(getattr(spec, member, None), list)
        spec = getattr(spec, member)[int(number)] if listed else getattr(spec, part)
    setattr(spec, last, value)


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far the outputs of an exported model are those of the model in heedful.

    Attributes:
        texts: Number of texts that were compared.
        equal: Number of texts with the same tokens, of greedy search; for a BERT, all texts.
        difference: Largest absolute difference of the log-probability of a token; for a BERT, of a hidden state.
    """

    texts: int
    equal: int
    difference: float

    @property
    def is_equal(self) -> bool:
        """True if all outputs are equal, and the numbers equal up to rounding."""
        return self.equal == self.texts and self.difference < ROUNDING

    def __str__(self) -> str:
        return (
            f"{self.equal:,} of {counted(self.texts, 'texts')} have the same output in CTranslate2, and the largest "
            f"difference is {self.difference:.2g}"
        )


def validation_texts(recipe: Recipe) -> Iterator[str]:
    """Yield the source texts of the validation set of a recipe; none if its files are not there."""
    if recipe.data.valid is None:
        return
    try:
        if FAMILIES[recipe.model.family].pairs:
            yield from (pair.source for pair in read_pairs(recipe.data.valid, recipe.data))
        else:
            yield from (document.text for document in read_documents(recipe.data.valid, recipe.data))
    except InputError:
        return


def compare_outputs(predictor: AnyPredictor, folder: Path, texts: Sequence[str]) -> Agreement:
    """Compare the outputs of a model with those of its export, computed by CTranslate2 in float32.

    Both write by greedy search, and both score the same tokens. Of a BERT the hidden states are compared.
    """
    compare = {Translator: _compare_translator, Generator: _compare_generator}.get(type(predictor), _compare_encoder)
    return compare(predictor, folder, [text for text in texts if text.strip()])


def _compare_translator(translator: Translator, folder: Path, texts: Sequence[str]) -> Agreement:
    import ctranslate2

    source = vocabulary(folder)
    target = source if translator.tokenizers.joint else vocabulary(folder / "target")
    lines = list(translator.translate_lines(texts, beam=1))
    rows = [[source[i] for i in row] for row in translator.tokenizers.source.encode_batch(texts)]
    outputs = [list(line.alternatives[0].hypothesis.tokens) for line in lines]

    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    most = max(map(len, outputs)) + 1
    results = engine.translate_batch(rows, beam_size=1, max_decoding_length=most, max_batch_size=64)
    # A translation that reached the length limit here is compared up to there.
    ends = [len(output) if not line.complete else most for output, line in zip(outputs, lines, strict=True)]
    theirs = [result.hypotheses[0][:end] for result, end in zip(results, ends, strict=True)]
    equal = sum([target[i] for i in ours] == tokens for ours, tokens in zip(outputs, theirs, strict=True))

    here = translator.score([(text, line.text) for text, line in zip(texts, lines, strict=True)])
    there = engine.score_batch(rows, [[target[i] for i in score.tokens[:-1]] for score in here], max_batch_size=64)
    return Agreement(texts=len(texts), equal=equal, difference=_largest_difference(here, there))


def _compare_generator(generator: Generator, folder: Path, texts: Sequence[str]) -> Agreement:
    import ctranslate2

    tokens = vocabulary(folder)
    engine = ctranslate2.Generator(str(folder), compute_type="float32")
    prompts = [text[:PROMPT] for text in texts]
    outputs = generator.generate(prompts, temperature=0.0, max_tokens=CONTINUATION)
    # The first token follows <eos>, as in training.
    rows = [[tokens[i] for i in (EOS, *row)] for row in generator.tokenizer.encode_batch(prompts)]
    results = engine.generate_batch(
        rows, max_length=CONTINUATION, sampling_topk=1, include_prompt_in_result=False, max_batch_size=64
    )
    theirs = [result.sequences[0] for result in results]
    equal = sum([tokens[i] for i in ours.tokens] == row for ours, row in zip(outputs, theirs, strict=True))

    here = generator.score(texts)
    there = engine.score_batch([[tokens[i] for i in (EOS, *score.tokens)] for score in here], max_batch_size=64)
    return Agreement(texts=len(texts), equal=equal, difference=_largest_difference(here, there))


def _compare_encoder(predictor: Any, folder: Path, texts: Sequence[str]) -> Agreement:
    import ctranslate2

    tokens = vocabulary(folder)
    rows = [[BOS, *row, EOS] for row in predictor.tokenizer.encode_batch(texts)]
    engine = ctranslate2.Encoder(str(folder), compute_type="float32")
    differences = []
    for row in rows:
        [there] = np.array(engine.forward_batch([[tokens[i] for i in row]]).last_hidden_state)
        ids = torch.tensor([row])
        with torch.no_grad():
            here = predictor.model.backbone(ids, torch.ones_like(ids, dtype=torch.bool))[0]
        differences.append(float(np.abs(here.numpy() - there).max()))
    return Agreement(texts=len(texts), equal=len(texts), difference=max(differences))


def _largest_difference(here: Sequence[TokenScores], there: Sequence[Any]) -> float:
    """Largest difference of the log-probability of a token in one of several texts."""
    pairs = zip(here, there, strict=True)
    return max(float(np.abs(np.subtract(ours.log_probs, theirs.log_probs)).max()) for ours, theirs in pairs)
