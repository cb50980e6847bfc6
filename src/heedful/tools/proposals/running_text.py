"""Running text: its survey, and first recipes for a GPT, which continues text, or a BERT, which fills in words."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.readers.documents import SECTION_BREAK, Document
from heedful.data.readers.files import ending_of
from heedful.data.readers.rows import READERS
from heedful.errors import InputError
from heedful.tools.proposals.proposal import (
    ADAMW,
    ADAMW_OF_BERT,
    ENCODER,
    HEADER,
    MODEL,
    TRAINING,
    Machine,
    RecipeData,
    Size,
    character_vocabulary,
    fill_template,
    fitting_size,
    schedule,
    subword_vocabulary,
)
from heedful.tools.proposals.text_statistics import is_spaceless, main_script


@dataclass(frozen=True)
class TextSurvey:
    """Statistics of a file or folder of running text: lines, paragraphs, sections, characters, words, letters."""

    files: int
    is_rows: bool  # True if it consists of tables or lists of objects, in which each row is a document
    lines: int  # number of lines or rows, without blank ones
    paragraphs: int  # number of paragraphs, separated by blank lines; rows are both paragraphs and sections
    sections: int  # number of sections, separated by two or more blank lines
    characters: int
    words: int
    letters: Counter[str]
    longest: int  # characters of the longest line
    longest_at: str  # file and line of the longest line
    beginning: str  # the first few words

    @property
    def script(self) -> str | None:
        return main_script(self.letters)

    @property
    def is_spaceless(self) -> bool:
        return is_spaceless(self.script, self.characters, self.words)

    @property
    def tokens(self) -> int:
        """Estimated number of tokens with a vocabulary of a few thousand pieces."""
        return round(0.7 * self.characters if self.is_spaceless else 1.3 * self.words)


def survey_text(documents: Iterable[Document], name: str) -> TextSurvey:
    """Survey a file or folder of running text in one pass, line by line."""
    files: set[Path] = set()
    letters: Counter[str] = Counter()
    lines = paragraphs = sections = characters = words = longest = 0
    longest_at = beginning = ""
    before: tuple[Path | None, int] = (None, 0)
    for text, file, line in documents:
        blank = line - before[1] - 1 if file == before[0] and ending_of(file) not in READERS else SECTION_BREAK
        before = (file, line)
        files.add(file)
        lines += 1
        paragraphs += blank > 0
        sections += blank >= SECTION_BREAK
        characters += len(text) + 1
        words += len(text.split())
        letters.update(text)
        beginning = beginning or " ".join(text.split()[:3])[:20]
        if len(text) > longest:
            longest, longest_at = len(text), f"{file}, line {line}"
    if not lines:
        raise InputError(f"{name}: has no text; check the file")
    is_rows = all(ending_of(file) in READERS for file in files)
    return TextSurvey(
        len(files), is_rows, lines, paragraphs, sections, characters, words, letters, longest, longest_at, beginning
    )


CPU_SECONDS = 3600  # the longest training without a GPU
MAX_CHARACTERS = 2_000_000  # of a text with a character tokenizer; more text is enough to learn subwords
MIN_PASSES = 4  # passes over the text, unless the size makes fewer; a smaller model is better than fewer
MIN_UPDATES = 1000
SAVES = 20  # checkpoints in a run, each after a validation
MIN_DOCUMENTS = 20  # with at least this many, passages can combine two documents
MIN_SECTIONS = 200  # so that a held-out twentieth has several, even if they differ in length


@dataclass(frozen=True)
class TextSize(Size):
    context: int  # tokens
    batch_tokens: int

    def work(self, vocab_size: int) -> float:
        """Floating-point operations to train on one token: 6 for each weight that the token uses."""
        return 6.0 * (self.layers * self.block + vocab_size * self.d_model)


GPT_SIZES = (
    TextSize("tiny", 300_000, 128, 512, 4, 4, 0.1, 1e-3, 100, 10, 128, 1024),
    TextSize("small", 20_000_000, 256, 1024, 4, 6, 0.1, 1.5e-3, 150, 10, 256, 4096),
    TextSize("medium", 200_000_000, 512, 2048, 8, 8, 0.1, 1e-3, 500, 5, 512, 16_384, gpu_memory=8),
    TextSize("gpt2", math.inf, 768, 3072, 12, 12, 0.1, 6e-4, 2000, 3, 1024, 32_768, gpu_memory=30),
)
BERT_SIZES = (
    TextSize("tiny", 20_000_000, 128, 512, 2, 2, 0.0, 2e-3, 500, 40, 128, 2048),
    TextSize("mini", 200_000_000, 256, 1024, 4, 4, 0.1, 1e-3, 1000, 20, 128, 16_384, gpu_memory=4),
    TextSize("small", math.inf, 512, 2048, 8, 4, 0.1, 5e-4, 4000, 10, 256, 32_768, gpu_memory=12),
)


def propose_gpt(survey: TextSurvey, machine: Machine, data: RecipeData) -> str:
    """Write a first recipe, in TOML, for a GPT, from a survey of the text and the machine."""
    if survey.characters <= MAX_CHARACTERS:
        kind, vocab_size, tokens = "character", character_vocabulary(len(survey.letters)), survey.characters
    else:
        kind, vocab_size, tokens = "bpe", subword_vocabulary(survey.characters / 250_000), survey.tokens
    values = model_values(GPT_SIZES, survey.characters, tokens, vocab_size, machine)
    values |= {"kind": kind, "min_lr": float(f"{values['lr'] / 10:.1e}")}
    return fill_template(GPT, data, values, content=f"{survey.characters:,} characters of text")


def propose_bert(survey: TextSurvey, machine: Machine, data: RecipeData) -> str:
    """Write a first recipe, in TOML, for a BERT, from a survey of the text and the machine."""
    if survey.is_rows:
        documents, count = "file", survey.lines
    elif survey.sections >= MIN_SECTIONS:
        documents, count = "section", survey.sections
    elif survey.files < MIN_DOCUMENTS:
        documents, count = "paragraph", survey.paragraphs
    else:
        documents, count = "file", survey.files
    several_sentences = not survey.is_rows and survey.characters / count >= 500
    if survey.is_spaceless:
        kind, vocab_size = "character", character_vocabulary(len(survey.letters))
    else:
        kind, vocab_size = "wordpiece", subword_vocabulary(survey.characters / 250_000)
    values = model_values(BERT_SIZES, survey.characters, survey.tokens, vocab_size, machine)
    values |= {"kind": kind, "documents": documents, "next_sentence": count >= MIN_DOCUMENTS and several_sentences}
    return fill_template(BERT, data, values, content=f"{survey.characters:,} characters of text")


def model_values(
    sizes: tuple[TextSize, ...], characters: int, tokens: int, vocab_size: int, machine: Machine
) -> dict[str, Any]:
    """Choose the size of the model and the number of updates; return these and `vocab_size` as template values.

    There are at least `MIN_UPDATES`, and enough for several passes over the text, unless a CPU would take too long.
    """

    def work(size: TextSize) -> float:
        return min(size.passes, MIN_PASSES) * tokens * size.work(vocab_size)

    size = fitting_size(sizes, characters, machine, CPU_SECONDS, work)
    updates = max(MIN_UPDATES, size.passes * tokens / size.batch_tokens)
    affordable = machine.budget(CPU_SECONDS) / (size.work(vocab_size) * size.batch_tokens)
    return schedule(size, min(updates, affordable), tokens / size.batch_tokens, SAVES) | {"vocab_size": vocab_size}


GPT = (
    HEADER
    + """\
name = $name
task = "language_model" # a GPT: what comes next?

[data]
max_length = $context # tokens of context
bad_utf8 = $bad_utf8

$corpora

[tokenizer]
kind = $kind # "character" suits small corpora, "bpe" larger ones
vocab_size = $vocab_size # an upper bound
"""
    + MODEL
    + """\
family = "decoder"
decoder_layers = $layers
positions = "rotary" # learns faster than "learned", the choice of GPT-2
attention_bias = false
bias = false
init = "scaled"
"""
    + ADAMW
    + """\
betas = [0.9, 0.99]
eps = 1e-8
weight_decay = 0.1
schedule = "cosine"
min_lr = $min_lr
"""
    + TRAINING
    + """
[generate]
temperature = 0.8 # 1.0 is more varied, 0 always takes the most likely token
"""
)

BERT = (
    HEADER
    + """\
name = $name
task = "masked_lm" # a BERT: which words are masked?

[data]
documents = $documents # "section" ends at two blank lines, "paragraph" at one, "file" at the end of a file
max_length = $context # tokens that are read at once
bad_utf8 = $bad_utf8

$corpora

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound; larger corpora benefit from a larger vocabulary
lowercase = true
mask = true

[masking]
next_sentence = $next_sentence # whether to also learn which passages follow each other
"""
    + ENCODER
    + """\
output_bias = true
"""
    + ADAMW_OF_BERT
    + TRAINING
)
