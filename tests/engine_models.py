"""Small models with random weights that torch and CTranslate2 compute, and commands that must not import torch."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.load import recipe_from_dict
from heedful.tasks import find_task
from heedful.text.pipeline import BOS, EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
LINES = [" ".join(WORDS[start : start + length]) for start in range(6) for length in (1, 2, 4, 6)]

WITHOUT_TORCH = (
    "import sys; from heedful.cli import app\n"
    "try: app()\n"
    "except SystemExit as end: assert not end.code, end.code\n"
    "assert 'torch' not in sys.modules\n"
    "assert 'numpy' not in sys.modules or sys.argv[1] != 'translate'\n"  # whose start it would make a tenth longer
)


def write_random_model(folder: Path, task: str, model: dict[str, Any], eos: float = 0.0, **tables: Any) -> Path:
    """Write a model of a task that writes <eos> more often by `eos`, a number added to its logit, and no <pad>."""
    torch.manual_seed(len(model))
    tokenizer = train_tokenizer(LINES, recipe_from_dict({"tokenizer": {"kind": "word"}}, "test").tokenizer)
    shape = {"d_model": 24, "d_ff": 20, "heads": 4, **model}
    recipe = recipe_from_dict({"name": "tiny", "task": task, "model": shape, **tables}, "test")
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    built: Any = find_task(task).build(recipe, tokenizers)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
        if eos:
            built.output.bias[EOS] += eos
            built.output.bias[[PAD, BOS]] = -1e4
    write_model(folder, recipe, tokenizers, weights(built))
    return folder


def run_without_torch(*arguments: object, lines: str = "") -> list[str]:
    """Run a command in a new process, check that it imports no torch (nor numpy to translate), return its lines."""
    command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, arguments)]
    result = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.removesuffix("\n").split("\n")
