"""Export of Transformers to CTranslate2, an inference engine for CPUs and GPUs, and comparison of the outputs.

The folder contains model.bin, config.json and the vocabulary, which `ctranslate2.Translator` (encoder-decoders),
`Generator` (GPTs) and `Encoder` (BERTs) load, and tokenizer.json, which the libraries `tokenizers` and `transformers`
load.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import ModelConfig
from heedful.convert.alignment_heads import alignment_head, with_head_first
from heedful.convert.exporter import CONTINUATION_TOKENS, PROMPT_CHARACTERS, Agreement, Exporter
from heedful.convert.model import Model, check_empty, count_values
from heedful.convert.opennmt import BLOCKS
from heedful.convert.weights import Names, Weights
from heedful.errors import InputError
from heedful.nn.positions import Relative, sinusoids
from heedful.predictors.generator import Generator
from heedful.predictors.outputs import TokenScores
from heedful.predictors.translator import Translator
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.text.hugging_face import to_hugging_face
from heedful.text.pipeline import BOS, EOS, UNK

TITLE = "CTranslate2"
PRECISIONS = ("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16")
POSITION_SCHEMES = ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")
ACTIVATIONS = {  # CTranslate2's names, by heedful's
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "quick_gelu": "GELUSigmoid",
    "silu": "SWISH",
    "swiglu": "SWISH",
}
MISSING = 'the export needs ctranslate2: pip install "heedful[ctranslate2]"'

GATED = {"feed_forward.gate": "ffn.linear_0", "feed_forward.up": "ffn.linear_0_noact"}
# For each family, heedful's names -> CTranslate2's: STACKS has each stack and the modules in its blocks, and AROUND the
# modules outside the stacks.
STACKS = {
    "encoder_decoder": {stack: (stack, block) for stack, block in BLOCKS.items()},
    "encoder": {"backbone.stack": ("encoder", BLOCKS["encoder"])},
    "decoder": {"backbone.stack": ("decoder", BLOCKS["encoder"])},  # a GPT has no cross-attention
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
HEADS = r"(?:transform|output|next_sentence|pooler)\..*"  # of BERT models: ctranslate2.Encoder returns hidden states


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write an encoder-decoder, a GPT or a BERT to a new or empty folder in CTranslate2's format.

    Returns the number of values in the weights, which are stored in one of `PRECISIONS`.

    Raises:
        InputError: CTranslate2 cannot represent the model, or the package is not installed.
        RunError: The folder cannot be written.
    """
    check_empty(folder)
    if model.recipe.data.modality != "text":
        from heedful.convert import faster_whisper

        return faster_whisper.write(model, folder, precision)
    config, positions = model.recipe.model, model.recipe.model.max_positions
    spec = specification(config, model.weights, positions)
    if config.family == "encoder_decoder":
        if best := alignment_head(model):
            # Replace the weights that `specification` filled in: the order of a layer's heads does not change the
            # outputs.
            fill(spec, their_weights(config, with_head_first(model.weights, config, *best)))
        # CTranslate2 returns the mean of a layer's first heads as the alignment: here the best head or, without
        # validation pairs, all heads of the second-to-last layer.
        layer, heads = (best[0], 1) if best else (max(0, config.decoder_layers - 2), config.heads)
        spec.decoder.alignment_layer, spec.decoder.alignment_heads = np.int16(layer), np.int16(heads)
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        family = config.family
        to_hugging_face(model.tokenizers.source, writer.path, family, positions)
        source = target = vocabulary(writer.path)
        if not model.tokenizers.joint:
            to_hugging_face(model.tokenizers.target, writer.path / "target", family, positions)
            target = vocabulary(writer.path / "target")

        save(spec, writer.path, config, (source, target), precision)
    return count_values(model.weights)


def reject_misfit(model: Model) -> None:
    """Raise an InputError if CTranslate2 cannot represent a model."""
    if model.recipe.data.modality == "text":
        reject_settings(model.recipe.model)
    else:
        from heedful.convert import faster_whisper

        faster_whisper.reject_misfit(model)


def reject_settings(config: ModelConfig) -> None:
    if misfits := model_misfits(config):
        raise InputError("\n  ".join(["CTranslate2 cannot represent this model:", *misfits]))


def model_misfits(config: Any) -> list[str]:
    """List the settings of a model that CTranslate2 cannot represent, each with the values that it supports."""
    if config.architecture != ModelConfig.architecture:
        return [f'model.architecture = "{config.architecture}": must be "{ModelConfig.architecture}"']
    misfits = []
    positions = [name for name in POSITION_SCHEMES if name != "alibi" or config.family == "decoder"]
    if config.positions not in positions:
        encoder = " in an encoder" * (config.positions == "alibi")
        misfits.append(f'model.positions = "{config.positions}": must be one of {", ".join(positions)}{encoder}')
    if config.activation not in ACTIVATIONS:
        misfits.append(f'model.activation = "{config.activation}": must be one of {", ".join(ACTIVATIONS)}')
    misfits += [
        f'model.{key} = "{getattr(config, key)}": must be "{getattr(ModelConfig, key)}"'
        for key in ("attention", "feed_forward")
        if getattr(config, key) != getattr(ModelConfig, key)
    ]
    if config.window is not None:
        misfits.append(f"model.window = {config.window}: must be left out")
    if config.norm == "none":
        misfits.append('model.norm = "none": must be "post" or "pre"')
    misfits += [
        f"model.{key} = false: must be true" for key in ("residual", "scale_scores") if not getattr(config, key)
    ]
    if config.d_v not in (None, config.d_k or config.d_model // config.heads):
        misfits.append(f"model.d_v = {config.d_v}: must be equal to model.d_k")
    if config.segments not in ((0, 2) if config.family == "encoder" else (0,)):
        misfits.append(f"model.segments = {config.segments}: must be 0, or 2 in an encoder")
    return misfits


def save(
    spec: Any, folder: Path, config: ModelConfig, vocabularies: Sequence[Sequence[str]], precision: str = "float32"
) -> None:
    """Add the vocabularies of source and target, equal if they share one, to a specification; check and save it."""
    source, target = vocabularies
    if config.family == "encoder_decoder":
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
    spec.save(str(folder))


def vocabulary(folder: Path) -> list[str]:
    definition = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    pieces = definition["model"]["vocab"]
    ids = dict(pieces) if isinstance(pieces, dict) else {piece: i for i, (piece, _) in enumerate(pieces)}
    ids |= {token["content"]: token["id"] for token in definition["added_tokens"]}
    return sorted(ids, key=ids.__getitem__)


def specification(config: ModelConfig, weights: Weights, positions: int) -> Any:
    """Build CTranslate2's specification of a model, with its weights in float32.

    `positions` is the length of the position table that CTranslate2 needs for sinusoids, or for no positions.

    Raises:
        InputError: CTranslate2 cannot represent the model, or the package is not installed.
    """
    reject_settings(config)
    try:
        from ctranslate2.specs import transformer_spec
        from ctranslate2.specs.common_spec import Activation, EmbeddingsMerge
    except ImportError as error:
        raise InputError(MISSING) from error
    options: dict[str, Any] = {
        "num_heads": config.heads,
        "pre_norm": config.norm == "pre",
        "activation": Activation[ACTIVATIONS[config.activation]],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.normalization == "rms",
        "layernorm_embedding": config.embedding_norm,
        "num_heads_kv": config.kv_heads,
        "head_dim": config.d_k,
        "relative_attention_bias": config.positions == "relative",
    }
    if config.positions == "rotary":
        # Dimension i is paired with i + K/2, which CTranslate2 calls "not interleaved".
        options |= {"rotary_dim": 0, "rotary_interleave": False, "rotary_base": config.rope_theta}

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
    fill(spec, their_weights(config, weights))
    return spec


def fill(spec: Any, variables: Mapping[str, np.ndarray]) -> None:
    """Set the variables of a specification by their names."""
    for name, value in variables.items():
        # A name such as encoder.layer_0.self_attention.linear_0.weight is a path of attributes and list items.
        part: Any = spec
        *path, last = name.split(".")
        for step in path:
            member, _, number = step.rpartition("_")
            is_item = number.isdigit() and isinstance(getattr(part, member, None), list)
            part = getattr(part, member)[int(number)] if is_item else getattr(part, step)
        setattr(part, last, value)


def their_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Convert weights to CTranslate2's variables, without position tables. A layer norm without a bias gets zeros."""
    feed_forward = GATED if config.activation == "swiglu" else {}
    names = dict(AROUND[config.family])
    for ours, (theirs, block) in STACKS[config.family].items():
        names |= {f"{ours}.norm": f"{theirs}.layer_norm", f"{ours}.embedding_norm": f"{theirs}.layernorm_embedding"}
        names |= {f"{ours}.blocks.#.{o}": f"{theirs}.layer_#.{t}" for o, t in (block | feed_forward).items()}
    left_out = r".*\.positions\.table\.weight" + (f"|{HEADS}" if config.family == "encoder" else "")
    # heedful stores a tied matrix once, but a specification needs each copy; CTranslate2 then finds equal matrices.
    copies = {"target_embedding.weight": "source_embedding.weight", "output.weight": "target_embedding.weight"}
    if config.family == "decoder":
        copies = {"output.weight": "backbone.embedding.weight"}
    present = {name: value for name, value in weights.items() if not re.fullmatch(left_out, name)}
    for copy, original in copies.items():
        # In this order: if all matrices are tied, the output is copied from the target embeddings, copied just before.
        if original in present:
            present.setdefault(copy, present[original])

    if config.segments and config.scale_embeddings:
        # CTranslate2 scales the sum of both embeddings, but heedful scales only the token embedding.
        name = "backbone.segments.table.weight"
        present[name] = present[name] / config.d_model**0.5

    variables = as_variables(Names(names).theirs(present))
    if config.normalization == "layer":
        # CTranslate2's layer norm requires a bias; its RMS norm has none.
        gammas = [name for name in variables if name.endswith("gamma")]
        betas = {name.removesuffix("gamma") + "beta": np.zeros_like(variables[name]) for name in gammas}
        variables = betas | variables
    return variables


def as_variables(weights: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Convert weights with CTranslate2's names to variables, in which norm weights are named gamma and beta."""
    variables = {}
    for name, value in weights.items():
        path, _, kind = name.rpartition(".")
        kind = {"weight": "gamma", "bias": "beta"}[kind] if "norm" in path.split(".")[-1] else kind
        variables[f"{path}.{kind}"] = value.detach().float().numpy()
    return variables


def set_positions(stack: Any, config: ModelConfig, table: Tensor | None, positions: int) -> None:
    if config.positions == "relative" and table is not None:
        # heedful shares one bias table among all layers; CTranslate2 has one in each layer.
        for layer in stack.layer:
            layer.self_attention.relative_attention_bias = table.detach().float().numpy()
            layer.self_attention.relative_attention_max_distance = np.int32(Relative.MAX_DISTANCE)
    elif config.positions in ("sinusoidal", "learned", "none"):
        # Without a table, CTranslate2 adds sinusoids, so a model without positions gets a table of zeros.
        if config.positions == "sinusoidal":
            table = sinusoids(positions, config.d_model)
        zeros = np.zeros((positions, config.d_model), dtype=np.float32)
        stack.position_encodings.encodings = zeros if table is None else table.detach().float().numpy()


def compare_outputs(loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> Agreement:
    """Compare the outputs of a model with those of its export, which CTranslate2 runs in float32.

    Both programs generate by greedy search and score the same tokens. For a BERT model, the hidden states are compared.
    """
    if loaded.recipe.data.modality != "text":
        from heedful.convert import faster_whisper

        return faster_whisper.compare_outputs(loaded, folder, texts)
    predictor = loaded.use()
    compare = {Translator: _compare_translator, Generator: _compare_generator}.get(type(predictor), _compare_encoder)
    return compare(predictor, folder, [text for text in texts if text.strip()])


def _compare_translator(translator: Translator, folder: Path, texts: Sequence[str]) -> Agreement:
    source = vocabulary(folder)
    target = source if translator.tokenizers.joint else vocabulary(folder / "target")
    rows = [[source[i] for i in row] for row in translator.tokenizers.source.encode_batch(texts)]
    return compare_translator(translator, folder, texts, rows, target)


def compare_translator(
    translator: Translator, folder: Path, texts: Sequence[str], rows: Sequence[Sequence[str]], target: Sequence[str]
) -> Agreement:
    """Compare a translator with its export, which reads `rows` of source tokens; `target` is the target vocabulary."""
    import ctranslate2

    lines = list(translator.translate_lines(texts, beam=1))
    outputs = [list(line.alternatives[0].hypothesis.tokens) for line in lines]

    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    max_tokens = max(map(len, outputs)) + 1
    results = engine.translate_batch(rows, beam_size=1, max_decoding_length=max_tokens, max_batch_size=64)
    # A translation that reached heedful's length limit is compared up to this length.
    ends = [max_tokens if line.complete else len(output) for output, line in zip(outputs, lines, strict=True)]
    theirs = [result.hypotheses[0][:end] for result, end in zip(results, ends, strict=True)]
    equal = sum([target[i] for i in ours] == tokens for ours, tokens in zip(outputs, theirs, strict=True))

    our_scores = translator.score([(text, line.text) for text, line in zip(texts, lines, strict=True)])
    # CTranslate2 itself adds the last token, <eos>.
    tokens = [[target[i] for i in score.tokens[:-1]] for score in our_scores]
    return _agreement(equal, our_scores, engine.score_batch(rows, tokens, max_batch_size=64))


def _compare_generator(generator: Generator, folder: Path, texts: Sequence[str]) -> Agreement:
    import ctranslate2

    tokens = vocabulary(folder)
    engine = ctranslate2.Generator(str(folder), compute_type="float32")
    prompts = [text[:PROMPT_CHARACTERS] for text in texts]
    rows = [[tokens[i] for i in row] for row in generator.tokenizer.encode_batch(prompts)]
    # The prompts and their continuations have to fit into the context.
    room = CONTINUATION_TOKENS if generator.context is None else generator.context - max(map(len, rows))
    count = min(CONTINUATION_TOKENS, max(1, room))
    outputs = generator.generate(prompts, temperature=0.0, max_tokens=count)
    results = engine.generate_batch(
        rows, max_length=count, sampling_topk=1, include_prompt_in_result=False, max_batch_size=64
    )
    theirs = [result.sequences[0] for result in results]
    equal = sum([tokens[i] for i in ours.tokens] == row for ours, row in zip(outputs, theirs, strict=True))

    our_scores = generator.score(texts)
    # `score` reads a text that is longer than the context in windows; only the first one is compared.
    end = None if generator.context is None else generator.context + 1
    # The first token of a text follows <eos>, as in training.
    scored = [[tokens[i] for i in (EOS, *score.tokens)][:end] for score in our_scores]
    return _agreement(equal, our_scores, engine.score_batch(scored, max_batch_size=64))


def _compare_encoder(predictor: Any, folder: Path, texts: Sequence[str]) -> Agreement:
    import ctranslate2

    tokens = vocabulary(folder)
    rows = [[BOS, *row, EOS] for row in predictor.tokenizer.encode_batch(texts)]
    engine = ctranslate2.Encoder(str(folder), compute_type="float32")
    differences = []
    for row in rows:
        [theirs] = np.array(engine.forward_batch([[tokens[i] for i in row]]).last_hidden_state)
        ids = torch.tensor([row])
        with torch.no_grad():
            ours = predictor.model.backbone(ids, torch.ones_like(ids, dtype=torch.bool))[0]
        differences.append(float(np.abs(ours.numpy() - theirs).max()))
    return Agreement(inputs=len(texts), equal=len(texts), difference=max(differences), program=TITLE)


def _agreement(equal: int, our_scores: Sequence[TokenScores], their_scores: Sequence[Any]) -> Agreement:
    """Return how many outputs are equal, and the largest difference in a token's log-probability."""
    differences = [
        float(np.abs(np.subtract(ours.log_probs[: len(theirs.log_probs)], theirs.log_probs)).max())
        for ours, theirs in zip(our_scores, their_scores, strict=True)
    ]
    return Agreement(inputs=len(our_scores), equal=equal, difference=max(differences), program=TITLE)


EXPORTER = Exporter(title=TITLE, writer=write, check=reject_misfit, precisions=PRECISIONS, compare=compare_outputs)
