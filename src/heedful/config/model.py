"""Model settings: those of all architectures, of text architectures, and of the Transformer."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.config.families import FAMILIES, FamilyName
from heedful.config.setting import Count, Natural, OpenNames, Positive, Rate, Setting
from heedful.registry import POSITIONS
from heedful.wording import counted

Poolings = Literal["first", "mean", "max", "last", "sum"]
Poolers = Literal["dense", "attention", "none"]

# Types of settings that several architectures share, each with its own default. The limits ensure that a model folder
# from a stranger is rejected early if it asks for a million layers.
Width = Annotated[Count, Setting(aliases=("dim", "emb_size", "embed_dim", "embedding_size", "hidden_size", "n_embd"))]
Layers = Annotated[Count, Le(1000)]
Heads = Annotated[Count, Le(10_000)]
Positions = Annotated[int, Ge(2), Le(1_000_000)]
Dropout = Annotated[Rate, Setting(resume="ask")]


@dataclass(frozen=True, kw_only=True)
class ArchitectureConfig:
    """Settings that models of every architecture have."""

    architecture: str = "transformer"
    """Architecture: a built-in one, or your own class as `module:Class`."""

    family: FamilyName = "encoder_decoder"
    """Kind of model: `encoder_decoder` as in translation, `encoder` as in BERT, `decoder` as in GPT, or
    `word_vectors`."""

    d_model: Width = 512
    """Size of embeddings and hidden states."""

    source_vectors: Annotated[str | None, Setting(resume="free")] = None
    """Word vector file to start from, relative to `data.root`: word2vec or GloVe, text or binary."""

    target_vectors: Annotated[str | None, Setting(resume="free")] = None
    """Word vector file for the target side, like `source_vectors`."""

    freeze_vectors: bool = False
    """If `true`, word vectors that were read from a file are not trained."""

    @property
    def learned_positions(self) -> int | None:
        """Size of the table of learned positions, which limits the length of a text; None if there is no table."""
        return None

    @property
    def learned_target_positions(self) -> int | None:
        """Size of the decoder's table of learned positions, which limits an output; None if there is no table."""
        return self.learned_positions

    @property
    def one_vocabulary(self) -> bool:
        """True if source and target share one embedding matrix, and therefore one vocabulary."""
        return False

    def shape(self) -> str:
        """Describe the shape of the model in words, for `heedful info`."""
        return ", ".join(f"{key} {value}" for key, value in vars(self).items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class TextModelConfig(ArchitectureConfig):
    """Settings that all of heedful's own text architectures have."""

    dropout: Dropout = 0.1
    """Dropout probability for embeddings, positions included, and the outputs of sublayers (section 5.4) or layers."""

    tie: Annotated[
        Literal["all", "output", "none"],
        Setting(aliases=("share_embeddings", "tie_embeddings", "tie_word_embeddings")),
    ] = "all"
    """Embeddings that share one matrix: source, target and output (`all`, section 3.4), target and output (`output`),
    or none of them (`none`)."""

    output_bias: bool = False
    """If `true`, each token of the output vocabulary has a bias."""

    scale_embeddings: bool = True
    """If `true`, token embeddings are multiplied by sqrt(d_model) (section 3.4)."""

    segments: Natural = 0
    """Number of segments of a sequence; each segment has a trained vector. BERT: 2."""

    init: Literal["glorot", "normal", "scaled"] = "glorot"
    """Initialisation of the weights: Glorot, normal as in BERT, or scaled as in GPT-2."""

    init_std: Positive = 0.02
    """Standard deviation of the initial weights with `normal` and `scaled`. BERT and GPT-2: 0.02."""

    pooling: Poolings | None = None
    """How hidden states become one vector. Not set: `first` in an encoder, `last` in a decoder, `mean` for ranking;
    some architectures have another default."""

    pooler: Poolers = "dense"
    """Layer before the output of a classifier: `dense` is tanh(W x + b) as in BERT, `attention` is a learned weighted
    mean that replaces `pooling`, and `none` leaves it out."""

    @property
    def one_vocabulary(self) -> bool:
        return self.tie == "all"

    @property
    def hidden_size(self) -> int:
        """Size of the hidden states that a classifier reads."""
        return self.d_model


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(ArchitectureConfig):
    """Settings of Transformer blocks, whether they are the whole model or a part of one."""

    d_ff: Annotated[Count, Setting(aliases=("dim_feedforward", "ffn_dim", "intermediate_size"))] = 2048
    """Size of the feed-forward networks' hidden layer."""

    heads: Annotated[Heads, Setting(aliases=("n_head", "n_heads", "nhead", "num_attention_heads", "num_heads"))] = 8
    """Number of attention heads."""

    kv_heads: Count | None = None
    """Number of key and value heads, each shared by heads / kv_heads query heads (grouped-query attention). Not set:
    `heads`."""

    d_k: Count | None = None
    """Head size: the size of a head's queries and keys. Not set: d_model / heads."""

    d_v: Count | None = None
    """Size of a head's values. Not set: `d_k`."""

    attention: Literal["multi_head", "latent", "linear"] = "multi_head"
    """Kind of self-attention: `multi_head` as in the paper; `latent` as in DeepSeek-V2, which computes the keys and
    values of all heads from one small vector per token (multi-head latent attention); or `linear`, whose weights are
    products of positive features of queries and keys, so that sums replace all pairs of tokens (Katharopoulos et al.
    2020)."""

    window: Annotated[Count | None, Setting(aliases=("sliding_window",))] = None
    """Number of tokens that self-attention reaches: a causal stack attends to a token and the `window` - 1 tokens
    before it (sliding window, as in Mistral), other stacks to `window` - 1 tokens on each side, too (as in Longformer).
    Memory is linear in the length of a text. Not set: all tokens."""

    kv_rank: Annotated[Count | None, Setting(aliases=("kv_lora_rank",))] = None
    """Size of that vector with `attention = "latent"`. Not set: 4 x `d_k`, as in DeepSeek-V2."""

    q_rank: Annotated[Count | None, Setting(aliases=("q_lora_rank",))] = None
    """Size of the vector from which `attention = "latent"` computes the queries. Not set: queries are projections of
    the hidden state."""

    d_rope: Annotated[Count | None, Setting(aliases=("qk_rope_head_dim",))] = None
    """Number of dimensions that `attention = "latent"` adds to queries and keys for rotary positions. Not set: half of
    `d_k`, as an even number (DeepSeek-V2: 64 of 128)."""

    encoder_layers: Annotated[Layers, Setting(aliases=("layers", "n_layers", "num_hidden_layers", "num_layers"))] = 6
    """Number of encoder layers."""

    decoder_layers: Annotated[Layers, Setting(aliases=("n_layer",))] = 6
    """Number of decoder layers."""

    positions: Annotated[
        Literal["sinusoidal", "learned", "rotary", "alibi", "relative", "none"],
        OpenNames(POSITIONS),
        Setting(values={"rope": "rotary"}),
    ] = "sinusoidal"
    """Position encoding."""

    rope_theta: Annotated[Positive, Setting(aliases=("rotary_base", "rotary_emb_base"))] = 10_000.0
    """Base of the angles of rotary positions: with head size K, pair i of dimensions turns by rope_theta^(-2i/K) per
    token."""

    max_positions: Annotated[Positions, Setting(aliases=("max_position_embeddings",))] = 1024
    """Size of the table of learned positions, which limits the length of a text. Other encodings have no limit."""

    max_target_positions: Positions | None = None
    """Size of the decoder's table of learned positions. Not set: `max_positions`."""

    norm: Literal["post", "pre", "none"] = "post"
    """Placement of the norms: `post` is LayerNorm(x + f(x)) as in the paper, `pre` is x + f(LayerNorm(x)), `none` is
    x + f(x)."""

    residual: bool = True
    """If `false`, blocks have no residual connections: the output f(x) of a sublayer replaces its input x."""

    normalization: Literal["layer", "rms"] = "layer"
    """Type of norm: layer norm, or RMS norm, which has no mean and no bias (Zhang & Sennrich 2019)."""

    norm_eps: Positive = 1e-5
    """Term added to the variance in norms for numerical stability."""

    activation: Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "swiglu", "identity"] = "relu"
    """Activation of feed-forward networks. GPT-2 uses `gelu_tanh`, CLIP `quick_gelu`; `swiglu` is gated."""

    feed_forward: Literal["dense", "experts"] = "dense"
    """Kind of feed-forward sublayer: `dense` is one network for all tokens as in the paper; `experts` sends each token
    to a few of many networks (mixture of experts, as in Mixtral and DeepSeek)."""

    experts: Annotated[
        Annotated[int, Ge(1), Le(1000)],
        Setting(aliases=("n_routed_experts", "num_experts", "num_local_experts")),
    ] = 8
    """Number of experts that tokens are sent to with `feed_forward = "experts"`."""

    experts_per_token: Annotated[Count, Setting(aliases=("num_experts_per_tok",))] = 2
    """Number of experts that compute a token, besides the shared ones."""

    shared_experts: Annotated[
        Annotated[int, Ge(0), Le(100)], Setting(aliases=("n_shared_experts", "num_shared_experts"))
    ] = 0
    """Number of further experts, which compute every token."""

    d_expert: Annotated[Count | None, Setting(aliases=("moe_intermediate_size",))] = None
    """Size of an expert's hidden layer. Not set: `d_ff`."""

    scale_scores: bool = True
    """If `true`, attention scores are divided by sqrt(d_k) (section 3.2.1)."""

    attention_bias: bool = True
    """If `true`, the query, key, value and output projections have biases."""

    bias: bool = True
    """If `true`, feed-forward networks and norms have biases."""

    source_eos: bool = True
    """If `true`, the encoder sees the `<eos>` of a source. The encoder of an OpenNMT model does not."""

    embedding_norm: bool = False
    """If `true`, the sum of embedding and position is normalised, as in BERT."""

    attention_dropout: Dropout = 0.0
    """Dropout probability for attention weights."""

    activation_dropout: Dropout = 0.0
    """Dropout probability inside feed-forward networks."""

    @property
    def learned_positions(self) -> int | None:
        return self.max_positions if self.positions == "learned" else None

    @property
    def learned_target_positions(self) -> int | None:
        return self.learned_positions and (self.max_target_positions or self.max_positions)

    @property
    def head_size(self) -> int:
        return self.d_k or self.d_model // self.heads

    @property
    def rotary_size(self) -> int:
        """Number of dimensions of a head's queries and keys that rotary positions rotate."""
        return self.head_size if self.attention != "latent" else self.d_rope or max(2, self.head_size // 4 * 2)

    @property
    def latent_size(self) -> int:
        """Size of the vector from which latent attention computes keys and values."""
        return self.kv_rank or 4 * self.head_size

    @property
    def cache_size(self) -> int:
        """Number of values that the KV caches of a decoder store for each token that it has written."""
        latent = self.latent_size + self.rotary_size
        keys_values = (self.kv_heads or self.heads) * (self.head_size + (self.d_v or self.head_size))
        return self.decoder_layers * (latent if self.attention == "latent" else keys_values)

    @property
    def sums_size(self) -> int:
        """Number of values that the linear attention of a GPT stores for all tokens that it has written."""
        return self.decoder_layers * (self.kv_heads or self.heads) * self.head_size * (1 + (self.d_v or self.head_size))

    def shape(self) -> str:
        """Describe the shape of a Transformer in words: layers, sizes, attention heads and placement of norms."""
        values = "" if self.d_v in (None, self.head_size) else f" (values {self.d_v})"
        numbers = [getattr(self, key) for key in FAMILIES[self.family].layers]
        layers = "+".join(map(str, numbers)) + " layers" if len(numbers) > 1 else counted(numbers[0], "layers")
        rank = f" from latents of {self.latent_size}" if self.attention == "latent" else ""
        rank += " of linear attention" if self.attention == "linear" else ""
        rank += f" in a window of {self.window}" if self.window else ""
        return (
            f"{layers}, d_model {self.d_model}, {self._feed_forward_shape()}, "
            f"{counted(self.heads, 'heads')} of {self.head_size}{values}{rank}, {self.norm}-norm"
        )

    def _feed_forward_shape(self) -> str:
        if self.feed_forward == "dense":
            return f"d_ff {self.d_ff}"
        shared = f" and {self.shared_experts} shared" if self.shared_experts else ""
        return f"{self.experts_per_token} of {self.experts}{shared} experts with d_ff {self.d_expert or self.d_ff}"


@dataclass(frozen=True, kw_only=True)
class ModelConfig(TransformerSettings, TextModelConfig):
    """Settings of a Transformer. The defaults describe the base model of Vaswani et al. (2017)."""
