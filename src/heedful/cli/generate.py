"""`heedful generate`: continue prompts with a language model (GPT)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.answering import AnswerForm, TextCommand, load, settings
from heedful.cli.inputs import TextRows, progress_of, shows_bar, texts_argument, texts_of, warning_if_unknown
from heedful.cli.output import is_table_output, one_line, warn, writing_results
from heedful.config.keys import KEYS
from heedful.config.schema import GenerateConfig
from heedful.data.readers.labelled import WholeRow
from heedful.progress import show_progress, silent
from heedful.text.tokenizer import EOS

if TYPE_CHECKING:
    from heedful.predictors.generator import Generation, GenerationRequest, Generator
    from heedful.progress import ProgressReporter

WINDOW = 1024  # number of requests that are read before their answers are written


def generate(
    models: Annotated[list[str], typer.Option("--model", help=f"{options.MODEL_HELP} {options.ENSEMBLE_HELP}")],
    prompt: Annotated[list[str] | None, texts_argument("Prompts to continue.")] = None,
    source: options.TextsOrTable = None,
    input_form: options.InputForm = None,
    source_field: options.SourceField = None,
    output: options.Output = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of answers per prompt; each uses the next seed.")] = 1,
    seed: Annotated[int | None, options.mirrored(KEYS.generate.seed)] = None,
    max_tokens: Annotated[int | None, options.mirrored(KEYS.generate.max_tokens)] = None,
    min_tokens: Annotated[int | None, options.mirrored(KEYS.generate.min_tokens)] = None,
    ignore_eos: Annotated[bool | None, options.mirrored(KEYS.generate.ignore_eos)] = None,
    temperature: Annotated[float | None, options.mirrored(KEYS.generate.temperature)] = None,
    top_k: Annotated[int | None, options.mirrored(KEYS.generate.top_k)] = None,
    top_p: Annotated[float | None, options.mirrored(KEYS.generate.top_p)] = None,
    min_p: Annotated[float | None, options.mirrored(KEYS.generate.min_p)] = None,
    typical: Annotated[float | None, options.mirrored(KEYS.generate.typical)] = None,
    repetition_penalty: Annotated[float | None, options.mirrored(KEYS.generate.repetition_penalty)] = None,
    frequency_penalty: Annotated[float | None, options.mirrored(KEYS.generate.frequency_penalty)] = None,
    presence_penalty: Annotated[float | None, options.mirrored(KEYS.generate.presence_penalty)] = None,
    no_repeat_ngram: Annotated[int | None, options.mirrored(KEYS.generate.no_repeat_ngram)] = None,
    stop: Annotated[list[str] | None, options.mirrored(KEYS.generate.stop, more="Can be repeated.")] = None,
    batch_tokens: Annotated[int | None, options.mirrored(KEYS.generate.batch_tokens)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each answer, with prompt, tokens and scores.")
    ] = False,
    device: options.Device = "auto",
    _force: options.Force = False,
    precision: options.Precision = "float32",
    engine: options.Engine = "auto",
    _verbose: options.Verbose = False,
) -> None:
    r"""Continue prompts with a language model; an empty prompt starts a new document.

    An answer is the text after the prompt. If the prompts come from a file or
    from standard input, each answer is one line: a line feed in it is written
    as \n, a carriage return as \r, a backslash before n, r or a backslash as
    \\. Answers to prompts on the command line or typed at a terminal are
    written unchanged; a single answer appears as it is generated. With
    --json, each line is
    {"prompt", "text", "pieces", "token_scores", "reason", "seed"}. The score
    of a token is the natural logarithm of its probability before filters such
    as top-k. "reason" says why the answer ends: eos, stop or length.

    In a table, the prompts are read from the column that the model's recipe
    names or, if the table does not have it, from the one that `heedful init`
    would choose as the text. An output file whose name ends in .csv, .tsv or
    .jsonl is a table: the columns of the input, "answer" and, with --samples,
    "seed".
    """
    changes = settings(locals(), GenerateConfig)
    command = TextCommand("generating", prompt, source, input_form, output, source_field, as_json=as_json)
    generator = load_generator(models, device, precision, engine, changes)
    rows = command.rows(texts_of(generator.recipe, source_field))
    lengths = AnswerLengths()

    is_single = len(prompt or ()) * samples == 1
    if (is_single or command.is_typed) and not as_json and not is_table_output(output):
        stream(command, rows, generator, samples, lengths, is_single=is_single)
    else:

        def answers(
            rows: "Iterator[WholeRow]", progress: "ProgressReporter"
        ) -> "Iterator[tuple[GenerationRequest, Generation]]":
            questions, copies = tee(requests(generator, (row.texts[0] for row in rows), samples))
            window = 1 if command.is_typed else WINDOW
            return zip(questions, generator.generate_lines(copies, window, progress.advance), strict=True)

        form = AnswerForm[Any](
            columns=("answer", "seed") if samples > 1 else ("answer",),
            line=lambda answer: answer[1].text if prompt else one_line(answer[1].text),
            cells=lambda answer: {"answer": answer[1].text, "seed": answer[0].config.seed},
            json=lambda answer: answer_fields(answer[0], answer[1], generator),
        )
        command.answer(rows, answers, form, lambda _, answer: lengths.add(*answer), "answers", samples)
    if max_tokens is not None:
        lengths.warn(max_tokens)


def load_generator(
    models: Sequence[str], device: str, precision: str, engine: str, changes: dict[str, Any]
) -> "Generator":
    """Load a generator or, if there are several models, an ensemble of generators."""
    from heedful.convert.engine import open_predictor
    from heedful.predictors.ctranslate2_generator import CTranslate2Generator
    from heedful.predictors.generator import Generator

    model, *others = models
    generator = open_predictor(CTranslate2Generator, model, engine, device, precision, changes, others)
    return generator or load(model, device, *others).use_as(Generator).with_options(**changes)


class AnswerLengths:
    """Number of answers, and the length in tokens of each answer that the model ended with <eos>."""

    def __init__(self) -> None:
        self.answers = 0
        self.early: list[int] = []

    def add(self, request: "GenerationRequest", generation: "Generation") -> None:
        del request
        self.answers += 1
        if generation.reason == "eos":
            self.early.append(len(generation.tokens))

    def warn(self, max_tokens: int) -> None:
        """Warn about answers that ended before the length that the user asked for."""
        if not self.early:
            return
        shortest, longest = min(self.early), max(self.early)
        verb = "ends" if len(self.early) == 1 else "end"
        which = "the answer ends" if self.answers == 1 else f"{len(self.early):,} of {self.answers:,} answers {verb}"
        length = f"{shortest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"
        warn(
            f"{which} after {length} of {max_tokens:,} tokens (--max-tokens), because the model generated <eos>; "
            "--ignore-eos or --min-tokens makes answers longer"
        )


def requests(generator: "Generator", prompts: Iterable[str], samples: int) -> Iterator["GenerationRequest"]:
    """Yield a generation request for each sample of each prompt; warn about overlong prompts and unknown words."""
    from heedful.predictors.generator import GenerationRequest

    if generator.tokenizer.byte_ids:
        prompts = warning_if_unknown(prompts, generator.tokenizer)  # otherwise, unknown words are reported below
    for number, prompt in enumerate(prompts, start=1):
        if not generator.reads_whole(prompt):
            problem = f"longer than the {generator.context} tokens that the model reads; only its end is read"
            warn(f"prompt {number}: {problem}")
        if unknown := list(dict.fromkeys(generator.unknown(prompt))):
            warn(f"prompt {number}: not in the model's vocabulary, so read as <unk>: {' '.join(unknown)}")
        for sample in range(samples):
            yield GenerationRequest(prompt, replace(generator.config, seed=generator.config.seed + sample))


def stream(
    command: TextCommand,
    rows: TextRows,
    generator: "Generator",
    samples: int,
    lengths: AnswerLengths,
    *,
    is_single: bool,
) -> None:
    """Write each answer as it is generated."""

    def parts(request: "GenerationRequest") -> Iterator[str]:
        lengths.add(request, (yield from generator.stream(request)))

    if not is_single:
        reporting = progress_of(command.work, command.texts, command.source, command.output, "answers")
    elif shows_bar(command.output):
        reporting = show_progress(command.work, "tokens", generator.config.max_tokens)
    else:  # the parts of the answer appear at the terminal as they are generated
        reporting = nullcontext(silent(command.work, "tokens", generator.config.max_tokens))
    with reporting as progress, writing_results(command.output, command.source, samples, rows) as results:
        for request in requests(generator, (row.texts[0] for row in rows.rows), samples):
            results.write_parts(progress.over(parts(request)))


def answer_fields(request: "GenerationRequest", generation: "Generation", generator: "Generator") -> dict[str, Any]:
    """Return the JSON fields of a generated answer; `pieces` has each token with a score, including <eos>."""
    ended = generation.reason == "eos"
    return {
        "prompt": request.prompt,
        "text": generation.text,
        "pieces": generator.tokenizer.pieces([*generation.tokens, EOS] if ended else generation.tokens),
        "token_scores": list(generation.token_scores),
        "reason": generation.reason,
        "seed": request.config.seed,
    }
