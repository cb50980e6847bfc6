"""Training settings: the optimizer, the training loop, LoRA and training in several processes."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.config.data import ORDER
from heedful.config.setting import Count, Fixed, FormerValues, Natural, NonNegative, Positive, Rate, Setting

Shardings = Literal["none", "full", "hybrid"]

BEST = Fixed("the best score so far could not be compared with the new ones")


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Settings of validation and test scores."""

    metrics: Annotated[tuple[str, ...], Setting(resume=BEST)] = ()
    """Names of the metrics to compute from outputs; custom ones as `module:object`. The first selects the best
    checkpoint, unless `train.best` is set. Empty: the metrics of the task."""


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Optimizer and learning-rate schedule settings. Updates are counted from 1."""

    name: Annotated[
        Literal["adam", "adamw", "muon", "row_sgd"],
        Setting(aliases=("optim",), resume=Fixed("the saved state belongs to the old optimizer")),
    ] = "adam"
    """Optimizer. `muon` orthogonalises the updates of the matrices in the stacks; `row_sgd` is SGD for word vectors."""

    lr: Annotated[Positive, Setting(aliases=("learning_rate",))] = 1.0
    """Peak learning rate. With `schedule = "noam"`, a factor that multiplies the paper's formula."""

    betas: Annotated[tuple[Rate, Rate], Setting(aliases=("adam_betas",))] = (0.9, 0.98)
    """Coefficients of the running averages of the gradient and its square."""

    eps: Annotated[Positive, Setting(aliases=("adam_epsilon",))] = 1e-9
    """Term added to the denominator for numerical stability."""

    weight_decay: Annotated[NonNegative, Setting(aliases=("wd",))] = 0.0
    """Weight decay of matrices. Biases and the weights of norms do not decay."""

    schedule: Annotated[
        Literal["noam", "inverse_sqrt", "cosine", "linear", "constant"],
        FormerValues(vaswani="noam"),
        Setting(aliases=("decay_method", "lr_scheduler", "lr_scheduler_type", "scheduler")),
    ] = "noam"
    """Learning-rate schedule: how the rate changes after the warm-up. `noam` (formerly `vaswani`) is the formula of
    section 5.3 of the paper, warm-up included."""

    warmup: Annotated[Natural, Setting(aliases=("num_warmup_steps", "warmup_steps", "warmup_updates"))] = 4000
    """Number of updates during which the learning rate rises."""

    min_lr: NonNegative = 0.0
    """Learning rate at which `cosine` and `linear` end, when the run reaches the first of its limits."""

    clip_norm: Annotated[NonNegative, Setting(aliases=("clip", "grad_clip", "gradient_clip_val", "max_grad_norm"))] = (
        0.0
    )
    """Maximum norm of the gradient; a larger gradient is scaled down. 0 turns clipping off."""

    @property
    def usual_lr(self) -> float:
        """Peak learning rate that error messages suggest for the optimizer."""
        return {"muon": 0.005, "row_sgd": 0.025}.get(self.name, 0.0005)


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """LoRA settings (Hu et al. 2022): low-rank updates of the linear layers are trained, not the layers themselves."""

    rank: Annotated[Count, Setting(aliases=("lora_r", "lora_rank", "r"))] = 8
    """Rank of a layer's update, which has rank x (inputs + outputs) trained weights."""

    alpha: Annotated[Positive, Setting(aliases=("lora_alpha",))] = 16.0
    """Scale of the updates, which are multiplied by alpha / rank."""

    dropout: Annotated[Rate, Setting(aliases=("lora_dropout",), resume="ask")] = 0.0
    """Dropout probability for the inputs of the updates."""

    targets: Annotated[tuple[str, ...], Setting(aliases=("lora_target", "lora_target_modules", "target_modules"))] = ()
    """Linear layers that get an update, given as parts of their names, such as `q` or `encoder.blocks.0`. Empty: all
    but the output layer."""

    also: Annotated[tuple[str, ...], Setting(aliases=("modules_to_save",))] = ()
    """Weights that are trained as well, given as prefixes of their names, such as `backbone.embedding`. Weights that
    the start model lacks, such as those of a new output layer, are always trained."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Training loop settings. Updates are counted from the start of the run, even if it is resumed."""

    seed: Annotated[Natural, Setting(resume=ORDER)] = 1
    """Random seed."""

    start: Annotated[
        str | None,
        Setting(
            aliases=(
                "finetune_from_model",
                "from_pretrained",
                "init_from",
                "model_name_or_path",
                "pretrained",
                "train_from",
            )
        ),
    ] = None
    """Model folder or run to start from (warm start), or `hf:OWNER/NAME` on the Hugging Face Hub. Its shape is used as
    well and, unless the recipe sets `tokenizer.path`, its tokenizer."""

    start_decoder: str | None = None
    """Language model from which the decoder of an encoder-decoder starts."""

    start_encoder_layers: tuple[Count, ...] = ()
    """Encoder layers that the model takes from `start`, counted from 1. A layer may be listed several times. Empty:
    all."""

    start_decoder_layers: tuple[Count, ...] = ()
    """Decoder layers that the model takes from `start`, counted from 1. A layer may be listed several times. Empty:
    all."""

    freeze: Annotated[
        tuple[str, ...], Setting(resume=Fixed("the saved optimizer state belongs to the weights that were trained"))
    ] = ()
    """Weights that are not trained, given as prefixes of their names, such as `backbone.embedding`."""

    lora: Annotated[
        LoraConfig | None, Setting(resume=Fixed("the saved optimizer state belongs to the weights that were trained"))
    ] = None
    """LoRA settings with which the start model is fine-tuned. Not set: all weights are trained."""

    vocabulary: Literal["keep", "extend", "remap"] | None = None
    """What to do if the vocabulary of `start` differs from the recipe's: `keep` uses the model's; `extend` and `remap`
    use the recipe's, with the model's vectors for the tokens that both have. With `extend`, it is an error if the
    recipe's lacks tokens of the model's. Not set: any difference is an error."""

    max_updates: Annotated[
        Count,
        Setting(
            aliases=(
                "max_iters",
                "max_steps",
                "max_update",
                "num_steps",
                "num_train_steps",
                "steps",
                "total_steps",
                "train_steps",
                "updates",
            ),
            resume="length",
        ),
    ] = 100_000
    """Maximum number of updates (optimizer steps)."""

    max_epochs: Annotated[
        Count | None,
        Setting(
            aliases=("epoch", "epochs", "max_epoch", "n_epochs", "num_epochs", "num_train_epochs"), resume="length"
        ),
    ] = None
    """Maximum number of passes over the training data."""

    max_minutes: Annotated[Positive | None, Setting(aliases=("max_time", "minutes"), resume="length")] = None
    """Maximum training time in minutes, not counting validation. A slower machine completes fewer updates."""

    batch_tokens: Annotated[
        Count,
        Setting(aliases=("batch", "batch_size", "per_device_train_batch_size", "train_batch_size"), resume=ORDER),
    ] = 4096
    """Maximum batch size in tokens, padding included: number of examples x length of the longest side."""

    accumulate: Annotated[
        Count, Setting(aliases=("accum_count", "accumulate_grad_batches", "gradient_accumulation_steps", "update_freq"))
    ] = 1
    """Number of batches whose gradients are accumulated for one update, over all processes."""

    label_smoothing: Annotated[Rate, Setting(aliases=("smoothing",))] = 0.1
    """Label smoothing. All reported losses include it; perplexity does not."""

    expert_balance: Annotated[NonNegative, Setting(aliases=("aux_loss_alpha", "router_aux_loss_coef"))] = 0.003
    """Weight of the loss that keeps the experts of each sequence equally busy, with `model.feed_forward = "experts"`
    (DeepSeek-V2, section 2.2.3). 0 turns it off."""

    class_weights: Literal["balanced"] | dict[str, float] | None = None
    """Weight of each class in the loss, as a table. `balanced` gives all classes the same total weight."""

    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "autocast", "float16"],
        Setting(
            aliases=("amp", "bf16", "fp16", "mixed_precision"),
            values={"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "mixed": "autocast"},
        ),
    ] = "auto"
    """Number format. `bfloat16` uses bfloat16 with float32 master weights, `autocast` is PyTorch's mixed precision,
    and `float16` is the same in float16 with a scaled loss, for GPUs without bfloat16. `auto` chooses `bfloat16` where
    the hardware supports it and is faster with it, and `float32` elsewhere."""

    compile: bool = False
    """If `true`, the blocks of the model are compiled with `torch.compile`."""

    activation_checkpointing: Annotated[
        bool, Setting(aliases=("checkpoint_activations", "gradient_checkpointing"), resume="free")
    ] = False
    """If `true`, blocks are recomputed in the backward pass, which saves memory and does not change the result."""

    device: Annotated[str, Setting(aliases=("cuda", "gpu", "no_cuda"), resume="free", per_machine=True)] = "auto"
    """Device to train on: `cpu`, `cuda`, `cuda:1`, `mps`, or `auto` for a GPU if there is one."""

    threads: Annotated[Count | None, Setting(aliases=("num_threads",), resume="free", per_machine=True)] = None
    """Number of CPU threads of each process. Not set: torch's choice, at most one per core."""

    workers: Annotated[
        Annotated[int, Ge(0), Le(1000)] | None,
        Setting(aliases=("dataloader_num_workers", "num_workers"), resume="free", per_machine=True),
    ] = None
    """Number of worker processes that read batches ahead, for each training process. Not set: one fewer than its share
    of the cores if media files are decoded for a GPU on Linux, otherwise 0."""

    validate_every: Annotated[
        Count,
        Setting(
            aliases=("eval_every", "eval_interval", "eval_steps", "valid_steps", "validate_interval"), resume="free"
        ),
    ] = 1000
    """Number of updates between validations."""

    validate_decoding: Annotated[bool, Setting(former=("validate_bleu",), resume=BEST)] = True
    """If `true`, validation decodes the validation set greedily and scores the outputs."""

    best: Annotated[str | None, Setting(aliases=("best_checkpoint_metric", "metric_for_best_model"), resume=BEST)] = (
        None
    )
    """Score that selects the best checkpoint. Not set: the task's first score, or the loss without
    `validate_decoding`."""

    patience: Annotated[Count | None, Setting(aliases=("early_stopping", "early_stopping_patience"), resume="free")] = (
        None
    )
    """Early stopping: number of validations in a row in which neither the score `best` nor the loss improves, after
    which the run ends."""

    save_every: Annotated[
        Count,
        Setting(
            aliases=("save_checkpoint_steps", "save_interval", "save_interval_updates", "save_steps"),
            resume=Fixed("the checkpoints to average at the end depend on it"),
        ),
    ] = 1000
    """Number of updates between checkpoints."""

    save_minutes: Annotated[Positive, Setting(resume="free")] = 10.0
    """Maximum time between checkpoints in minutes."""

    keep_last: Annotated[
        Count, Setting(aliases=("keep_checkpoint", "keep_last_epochs", "save_total_limit"), resume="free")
    ] = 3
    """Number of most recent checkpoints at multiples of `save_every` that are kept. The best checkpoint and the two
    newest ones are kept as well."""

    average_last: Annotated[Count, Setting(aliases=("average_checkpoints",))] = 1
    """Number of most recent checkpoints whose average is the final model, unless the best or the last checkpoint alone
    is clearly better. Checkpoints of the warm-up and of the first half of the run are not averaged."""

    log_every: Annotated[Count, Setting(aliases=("log_interval", "logging_steps", "report_every"), resume="free")] = 50
    """Number of updates between log lines."""

    tensorboard: Annotated[bool, Setting(resume="free")] = False
    """If `true`, the scores in the log are also written as TensorBoard curves."""


@dataclass(frozen=True, kw_only=True)
class ParallelConfig:
    """Settings for training in several processes, on one or several machines. None of them affects results."""

    timeout_minutes: Annotated[Positive, Le(1_000_000)] = 10.0
    """Time in minutes for which processes wait for one that does not respond. Then training stops."""

    shard: Shardings = "none"
    """Sharding of the model: `full` over all processes (FSDP2), `hybrid` over groups that each have a copy (HSDP)."""

    shard_processes: Count | None = None
    """Number of processes that share a copy of the model, with `shard = "hybrid"`. Not set: the processes of one
    machine."""
