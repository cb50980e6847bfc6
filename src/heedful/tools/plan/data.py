"""Training data for a plan: the volume of a recipe's files, and batches from prepared or synthetic data."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from heedful.config.schema import Recipe
from heedful.data.passages import SentenceStore
from heedful.data.preparation.pairs import PreparedPairs
from heedful.data.preparation.prepared_data import REPORT, PreparedData, data_digest, read_only
from heedful.data.readers.documents import text_files
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import decode_lines, open_bytes
from heedful.data.stores import PairStore
from heedful.data.stream import TokenStream
from heedful.errors import InputError
from heedful.nn.paper import CPU
from heedful.storage.paths import no_folder
from heedful.tasks import Task, find_task
from heedful.tasks.language_model import TextWindows
from heedful.tasks.masked_lm import Passages
from heedful.tasks.model_size import SizeOnly, vocabulary_sizes
from heedful.tasks.parts.sequence_to_sequence import Pairs
from heedful.tasks.task import Batch
from heedful.text.tokenizer_pair import TokenizerPair

TOKEN = 7  # any id of a real token
SENTENCE = 32  # tokens per sentence in the passages for BERT


class PlannedTokenizer(SizeOnly):
    """Placeholder tokenizer; the ids in its upper half count as words, which can replace masked tokens."""

    @property
    def first_word(self) -> int:
        """First id in the vocabulary that can replace a masked token."""
        return len(self) // 2


def task_on_paper(recipe: Recipe, length: int) -> Task:
    """Create a recipe's task with data for a full batch, but without any text.

    An encoder-decoder gets sentences of `length` tokens on both sides; other models get texts of `data.max_length`.
    """
    kind = find_task(recipe.task)
    tokenizers = TokenizerPair(*map(PlannedTokenizer, vocabulary_sizes(recipe)))
    data, batch_tokens, width = kind.dataset, recipe.train.batch_tokens, recipe.data.max_length
    rest = ((1.0,), None, "", DropReport())
    if issubclass(data, Pairs):
        count = max(1, batch_tokens // length)
        pairs = PairStore(
            ids=np.full(2 * count * length, TOKEN, np.uint16),
            lengths=np.full((count, 2), length, np.int32),
            offsets=2 * length * np.arange(count),
            files=(),
        )
        return kind(data(recipe, PreparedPairs(tokenizers, (pairs,), *rest, [])))
    if issubclass(data, TextWindows):  # for a language model
        size = max(batch_tokens, width) + 2 * width
        text = TokenStream(np.full(size, TOKEN, np.uint16), np.array([0, size]), size, files=())
        return kind(data(recipe, PreparedData(tokenizers, (text,), *rest)))
    if issubclass(data, Passages):  # for a masked language model, in two documents
        count = max(batch_tokens, width) * 3 // SENTENCE + 2
        ids, bounds = np.full(SENTENCE * count, TOKEN, np.uint16), SENTENCE * np.arange(count + 1)
        sentences = SentenceStore(ids, bounds, np.array([0, count // 2, count]), files=())
        return kind(data(recipe, PreparedData(tokenizers, (sentences,), *rest)))
    raise InputError(
        f'task = "{recipe.task}": the batches depend on the examples; start a run, which prepares its data first, and '
        "give that data with --prepared RUN/data"
    )


CHUNK = 1 << 24  # bytes
SAMPLE_LINES = 1000  # number of lines of each file that are encoded
BYTES_PER_TOKEN = {"character": 1.0, "byte": 1.0, "word": 6.0}  # roughly, in European languages
SUBWORD = 4.0


@dataclass(frozen=True)
class DataVolume:
    files: int  # the number of files
    bytes: int  # the decompressed size of their text; only the `part` of each corpus that is read counts
    lines: int  # the number of lines in this text
    tokens: int  # an estimate of its number of tokens
    how: str  # how the number of tokens was estimated, for display


def data_volume(recipe: Recipe) -> DataVolume | None:
    """Measure the training text of a recipe; return None if a file is missing, or if the data is not text."""
    exists = all((Path(recipe.data.root) / corpus.source).exists() for corpus in recipe.data.train)
    if recipe.data.modality != "text" or not exists:
        return None
    files = [(file, corpus.part) for corpus in recipe.data.train for file in text_files(corpus, recipe.data)]
    if not files or not all(file.is_file() for file, _ in files):
        return None
    size = lines = 0.0
    for file, (begin, end) in files:
        whole_size = whole_lines = 0
        with open_bytes(file) as stream:
            while chunk := stream.read(CHUNK):
                whole_size += len(chunk)
                whole_lines += chunk.count(b"\n")
        size += (end - begin) * whole_size
        lines += (end - begin) * whole_lines
    ratio, how = bytes_per_token(recipe, [file for file, _ in files])
    return DataVolume(len(files), round(size), round(lines), round(size / ratio), how)


def bytes_per_token(recipe: Recipe, files: list[Path]) -> tuple[float, str]:
    """Estimate the bytes per token, with a trained tokenizer or by its kind; also return how they were estimated."""
    folder = Path(recipe.tokenizer.path) if recipe.tokenizer.path else None
    lines: list[str] = []
    for file in files:
        with open_bytes(file) as stream:
            decoded = decode_lines(stream, str(file), bad_utf8="replace")
            lines += [line or "" for line in islice(decoded, SAMPLE_LINES)]
    if folder is None or not folder.is_dir() or not lines:
        guess = BYTES_PER_TOKEN.get(recipe.tokenizer.kind, SUBWORD)
        return guess, f"assuming {guess:g} {'byte' if guess == 1 else 'bytes'} per token"
    tokenizer = TokenizerPair.load(folder).source
    tokens = sum(map(len, tokenizer.encode_batch(lines)))
    return sum(len(line.encode()) for line in lines) / max(1, tokens), "from the tokenizer and the first lines"


SAMPLE_BATCHES = 32  # batches of an epoch among which a typical and the largest one are chosen


@dataclass(frozen=True)
class PlannedBatches:
    task: Task
    typical: Batch  # a batch with about the mean number of tokens
    largest: Batch  # the batch that probably needs the most memory
    tokens: float  # the mean number of real tokens per batch
    epoch: int | None  # the number of batches per epoch; None for synthetic batches
    origin: str  # where the batches come from, for display


def batches_of(recipe: Recipe, length: int, prepared: Path | None) -> PlannedBatches:
    """Return a recipe's batches from prepared data or, without it, synthetic ones; `length` as in `task_on_paper`."""
    if prepared is not None:
        return prepared_batches(recipe, prepared)
    if not issubclass(find_task(recipe.task).dataset, Pairs):
        task = task_on_paper(recipe, length)
        batch = largest_of(task, task.data.epoch(0))
        return PlannedBatches(task, batch, batch, batch.tokens, None, f"texts of {recipe.data.max_length} tokens")
    longest = min(recipe.data.filters.max_tokens, recipe.model.learned_positions or recipe.data.filters.max_tokens)
    if length > longest:
        raise InputError(f"--length {length}: this recipe's sentences have at most {longest} tokens")
    task, extreme = task_on_paper(recipe, length), task_on_paper(recipe, longest)
    typical = largest_of(task, task.data.epoch(0))
    largest = largest_of(extreme, extreme.data.epoch(0))
    origin = f"sentences of {length} tokens on both sides, {longest} in the largest batch"
    return PlannedBatches(task, typical, largest, typical.tokens, None, origin)


def prepared_batches(recipe: Recipe, prepared: Path) -> PlannedBatches:
    kind = find_task(recipe.task)
    recipe = kind.dataset.reader.resolve(recipe)
    try:
        digest = json.loads((prepared / REPORT).read_text(encoding="utf-8"))["digest"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "give the data folder of a run, RUN/data"
        problem = (
            f"{prepared}: contains no prepared data; {remedy}" if prepared.is_dir() else no_folder(prepared, remedy)
        )
        raise InputError(f"--prepared {problem}") from error
    if not str(digest).startswith(data_digest(recipe)):
        raise InputError(
            f"--prepared {prepared}: was prepared from different data, or with different settings than the recipe's; "
            "give the data folder of a run of this recipe"
        )
    with read_only():
        task = kind.prepare(recipe, prepared, lambda _: None)
    epoch = task.data.epoch(0)
    indices = np.linspace(0, len(epoch) - 1, min(SAMPLE_BATCHES, len(epoch))).round().astype(int)
    sample = [task.data.batch(epoch[index], 0, CPU) for index in indices]
    tokens = sum(batch.tokens for batch in sample) / len(sample)
    typical = min(sample, key=lambda batch: abs(batch.tokens - tokens))
    return PlannedBatches(task, typical, largest_of(task, epoch), tokens, len(epoch), "the prepared data")


def largest_of(task: Task, epoch: Sequence[np.ndarray]) -> Batch:
    """Return the batch that probably needs the most memory.

    Batches with the fewest texts have the longest ones; of these, the batch with the most values is returned.
    """

    def cells(batch: Batch) -> int:
        """Return the number of values in the largest tensor of a batch, including padding."""
        return max(value.numel() for value in vars(batch).values() if isinstance(value, torch.Tensor))

    longest = sorted(epoch, key=len)[:SAMPLE_BATCHES]
    return max((task.data.batch(ids, 0, CPU) for ids in longest), key=cells)
