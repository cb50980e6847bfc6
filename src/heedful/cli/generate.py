"""`heedful generate`: continue prompts with a language model (GPT)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.answering import AnswerForm, TextCommand, changed, load, settings
from heedful.cli.inputs import TextRows, progress_of, shows_bar, texts_argument, wanted_texts, warning_if_unknown
from heedful.cli.output import is_table_output, one_line, writing_answers
from heedful.config.keys import KEYS
from heedful.data.readers.labelled import WholeRow
from heedful.progress import show_progress, silent
from heedful.text.tokenizer import EOS

if TYPE_CHECKING:
    from heedful.predictors.generator import Generation, GenerationRequest, Generator
    from heedful.progress import ProgressReporter

WINDOW = 1024  # requests that are read before their answers are written


def generate(
    model: options.Model,
    prompt: Annotated[list[str] | None, texts_argument("Prompts to continue.")] = None,
    source: options.TextsOrTable = None,
    input_form: options.InputForm = None,
    source_field: options.SourceField = None,
    output: options.Output = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of answers to each prompt; each has the next seed.")] = 1,
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
) -> None:
    r"""Continue prompts with a language model; an empty prompt begins a new document.

    An answer is the text after the prompt. If the prompts come from a file or
    from standard input, each answer is one line: a line feed in it is written
    as \n, a carriage return as \r, a backslash before n, r or a backslash as
    \\. Answers to prompts on
    the command line or typed at a terminal are written as they are; a single
    answer appears while it is generated. With --json a line is
    {"prompt", "text", "pieces", "token_scores", "reason", "seed"}. The score
    of a token is the natural logarithm of its probability before filters such
    as top-k. "reason" says why the answer ends: eos, stop or length.

    In a table, the prompts are read from the column that the model's recipe
    names or, if the table does not have it, that `heedful init` would take for
    the text. An output file whose name ends in .csv, .tsv or .jsonl is a table:
    the columns of the input, "answer" and, with --samples, "seed".
    """
    changes = settings(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        ignore_eos=ignore_eos,
        repetition_penalty=repetition_penalty,
        frequency_penalty=frequency_penalty,
        presence_penalty=presence_penalty,
        no_repeat_ngram=no_repeat_ngram,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        typical=typical,
        stop=stop or None,
        seed=seed,
        batch_tokens=batch_tokens,
    )
    command = TextCommand("generating", prompt, source, input_form, output, source_field, as_json=as_json)
    prompts = command.lines()
    generator = prepare(model, device, precision, changes)
    rows = command.rows(prompts, wanted_texts(generator.recipe, source_field))
    early = EarlyEnds(has_length=max_tokens is not None)

    is_single = len(prompt or ()) * samples == 1
    if (is_single or command.is_typed) and not as_json and not is_table_output(output):
        stream(command, rows, generator, samples, early, is_single=is_single)
        early.warn()
        return

    def answers(
        read: "Iterator[WholeRow]", progress: "ProgressReporter"
    ) -> "Iterator[tuple[GenerationRequest, Generation]]":
        window = 1 if command.is_typed and as_json else WINDOW
        questions = requests(generator, (row.texts[0] for row in read), samples)
        return generations(generator, questions, window, progress.advance)

    form = AnswerForm[Any](
        columns=("answer", "seed") if samples > 1 else ("answer",),
        line=lambda answer: answer[1].text if prompt else one_line(answer[1].text),
        cells=lambda answer: {"answer": answer[1].text, "seed": answer[0].config.seed},
        json=lambda answer: answer_fields(answer[0], answer[1], generator),
    )
    command.answer(rows, answers, form, lambda _, answer: early.add(answer[0], answer[1]), "answers", samples)
    early.warn()


class EarlyEnds:
    """Counts the answers that the model ended by <eos> before the length that the user asked for."""

    def __init__(self, *, has_length: bool) -> None:
        self.has_length = has_length
        self.answers = 0
        self.lengths: list[int] = []  # of the answers that ended early
        self.longest = 0

    def add(self, request: "GenerationRequest", generation: "Generation") -> None:
        self.answers += 1
        self.longest = request.config.max_tokens
        if generation.reason == "eos":
            self.lengths.append(len(generation.tokens))

    def warn(self) -> None:
        """Write a line to standard error if answers ended early; nothing if the user gave no length."""
        if not (self.has_length and self.lengths):
            return
        shortest, longest = min(self.lengths), max(self.lengths)
        which = "the answer ends" if self.answers == 1 else f"{len(self.lengths):,} of {self.answers:,} answers end"
        length = f"{shortest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"
        typer.echo(
            f"heedful: {which} with <eos> after {length} of --max-tokens {self.longest:,}, written by the model; "
            "--ignore-eos or --min-tokens makes answers longer",
            err=True,
        )


def prepare(model: str, device: str, precision: str, changes: dict[str, Any]) -> "Generator":
    from heedful.predictors.generator import Generator

    loaded = load(model, device, precision)
    generator = loaded.use_as(Generator)
    generator.config = changed(loaded, "generate", changes).generate
    return generator


def requests(generator: "Generator", prompts: Iterable[str], samples: int) -> Iterator["GenerationRequest"]:
    """Make a generation request for each sample of each prompt; warn of too long prompts and of unknown words."""
    from heedful.predictors.generator import GenerationRequest

    if generator.tokenizer.byte_ids:
        prompts = warning_if_unknown(prompts, generator.tokenizer)  # else unknown words are reported below
    for number, prompt in enumerate(prompts, start=1):
        if not generator.reads_whole(prompt):
            message = f"longer than the {generator.context} tokens that the model reads; only its end is read"
            typer.echo(f"heedful: prompt {number}: {message}", err=True)
        if unknown := list(dict.fromkeys(generator.unknown(prompt))):
            message = f"not in the model's vocabulary, and read as <unk>: {' '.join(unknown)}"
            typer.echo(f"heedful: prompt {number}: {message}", err=True)
        for sample in range(samples):
            yield GenerationRequest(prompt, replace(generator.config, seed=generator.config.seed + sample))


def generations(
    generator: "Generator", asked: Iterator["GenerationRequest"], window: int, done: Callable[[int], object]
) -> Iterator[tuple["GenerationRequest", "Generation"]]:
    """Generate answers in bounded memory, `window` requests at a time; `done` gets the number of answers just ended."""
    asked, read = tee(asked)
    return zip(asked, generator.generate_lines(read, window, done), strict=True)


def stream(
    command: TextCommand, rows: TextRows, generator: "Generator", samples: int, early: EarlyEnds, *, is_single: bool
) -> None:
    if not is_single:
        reporting = progress_of(command.work, command.texts, command.source, command.output, "answers")
    elif shows_bar(command.output):
        reporting = show_progress(command.work, "tokens", generator.config.max_tokens)
    else:  # the parts of the answer appear at the terminal as they come
        reporting = nullcontext(silent(command.work, "tokens", generator.config.max_tokens))
    with reporting as progress, writing_answers(command.output, command.source, rows, (), each=samples) as results:
        for request in requests(generator, (row.texts[0] for row in rows.rows), samples):
            parts = answer_parts(generator, request, early)
            results.write_parts(progress.over(parts))


def answer_parts(generator: "Generator", request: "GenerationRequest", early: EarlyEnds) -> Iterator[str]:
    early.add(request, (yield from generator.stream(request)))


def answer_fields(request: "GenerationRequest", generation: "Generation", generator: "Generator") -> dict[str, Any]:
    """Return the JSON fields of a generated answer; `pieces` names each token that has a score, <eos> included."""
    ended = generation.reason == "eos"
    return {
        "prompt": request.prompt,
        "text": generation.text,
        "pieces": generator.tokenizer.pieces([*generation.tokens, EOS] if ended else generation.tokens),
        "token_scores": generation.token_scores,
        "reason": generation.reason,
        "seed": request.config.seed,
    }
