"""`heedful generate`: continue prompts with a language model (GPT)."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.inputs import (
    input_file,
    input_lines,
    is_typed,
    progress_of,
    progress_of_stream,
    texts_or_stdin,
    warning_if_unknown,
)
from heedful.cli.options import (
    STDIN,
    Device,
    Force,
    InputForm,
    Model,
    Output,
    Precision,
    SourceField,
    TextsOrTable,
    mirrored,
)
from heedful.cli.output import check_output
from heedful.cli.tables import (
    check_columns,
    check_json_output,
    given_texts,
    is_table_output,
    one_line,
    wanted_texts,
    whole_lines,
    writing_answers,
)
from heedful.cli.translate import changed, load
from heedful.config.keys import KEYS

if TYPE_CHECKING:
    from heedful.predictors.generator import Generation, GenerationRequest, Generator

WINDOW = 1024  # requests that are read before their answers are written


def generate(
    model: Model,
    prompt: Annotated[
        list[str] | None, typer.Argument(help="Prompts to continue.", show_default=STDIN, callback=texts_or_stdin)
    ] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    output: Output = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of answers to each prompt; each has the next seed.")] = 1,
    seed: Annotated[int | None, mirrored(KEYS.generate.seed)] = None,
    max_tokens: Annotated[int | None, mirrored(KEYS.generate.max_tokens)] = None,
    min_tokens: Annotated[int | None, mirrored(KEYS.generate.min_tokens)] = None,
    ignore_eos: Annotated[bool | None, mirrored(KEYS.generate.ignore_eos)] = None,
    temperature: Annotated[float | None, mirrored(KEYS.generate.temperature)] = None,
    top_k: Annotated[int | None, mirrored(KEYS.generate.top_k)] = None,
    top_p: Annotated[float | None, mirrored(KEYS.generate.top_p)] = None,
    min_p: Annotated[float | None, mirrored(KEYS.generate.min_p)] = None,
    typical: Annotated[float | None, mirrored(KEYS.generate.typical)] = None,
    repetition_penalty: Annotated[float | None, mirrored(KEYS.generate.repetition_penalty)] = None,
    frequency_penalty: Annotated[float | None, mirrored(KEYS.generate.frequency_penalty)] = None,
    presence_penalty: Annotated[float | None, mirrored(KEYS.generate.presence_penalty)] = None,
    no_repeat_ngram: Annotated[int | None, mirrored(KEYS.generate.no_repeat_ngram)] = None,
    stop: Annotated[list[str] | None, mirrored(KEYS.generate.stop, more="Can be repeated.")] = None,
    batch_tokens: Annotated[int | None, mirrored(KEYS.generate.batch_tokens)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each answer, with prompt, tokens and scores.")
    ] = False,
    device: Device = "auto",
    _force: Force = False,
    precision: Precision = "float32",
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
    check_output(output, source)
    check_json_output(output, as_json=as_json)
    changes = {
        "max_tokens": max_tokens,
        "min_tokens": min_tokens,
        "ignore_eos": ignore_eos,
        "repetition_penalty": repetition_penalty,
        "frequency_penalty": frequency_penalty,
        "presence_penalty": presence_penalty,
        "no_repeat_ngram": no_repeat_ngram,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "typical": typical,
        "stop": stop or None,
        "seed": seed,
        "batch_tokens": batch_tokens,
    }
    chosen = {key: value for key, value in changes.items() if value is not None}
    source = input_file(prompt, source, input_form)
    check_columns(source, "--input", source_field)
    lines = whole_lines(input_lines(prompt, source))
    generator = prepare(model, device, precision, chosen)
    early = EarlyEnds(asked=max_tokens is not None)
    given = given_texts(lines, source, wanted_texts(generator.recipe, source_field))
    rows, read = tee(given.rows)
    asked = requests(generator, (row.texts[0] for row in read), samples)
    typed = is_typed(prompt, source)
    columns = () if as_json else ("answer", "seed") if samples > 1 else ("answer",)
    is_table = bool(columns) and is_table_output(output)
    single = len(prompt or ()) * samples == 1 and not is_table
    if single and not as_json:
        shown = progress_of_stream("generating", "tokens", generator.config.max_tokens, output)
    else:
        shown = progress_of("generating", prompt, source, output, "answers", samples, given.count)
    with shown as progress, writing_answers(output, source, given, columns, each=samples) as results:
        if is_table:
            repeated = (row for row in rows for _ in range(samples))
            found = generations(generator, asked, WINDOW, progress.advance)
            for row, (request, generation) in zip(repeated, found, strict=True):
                early.note(request, generation)
                results.write(row, "", {"answer": generation.text, "seed": request.config.seed})
            answers: Iterator[Iterable[str]] = iter(())
        elif as_json:
            answers = json_lines(generator, asked, 1 if typed else WINDOW, progress.advance, early)
        elif typed or single:
            answers = (progress.over(streamed(generator, request, early)) for request in asked)
        else:
            answers = texts(generator, asked, progress.advance, early, escaped=not prompt)
        for answer in answers:
            results.results.write_parts(answer)
    early.tell()


class EarlyEnds:
    """Counts the answers that the model ended by <eos> before the length that the user asked for.

    Args:
        asked: True if the user gave a length.
    """

    def __init__(self, *, asked: bool) -> None:
        self.asked = asked
        self.answers = 0
        self.lengths: list[int] = []  # of the answers that ended early
        self.longest = 0

    def note(self, request: "GenerationRequest", generation: "Generation") -> None:
        """Note an answer when it has ended."""
        self.answers += 1
        self.longest = request.config.max_tokens
        if generation.reason == "eos":
            self.lengths.append(len(generation.tokens))

    def tell(self) -> None:
        """Write a line to standard error if answers ended early; nothing if the user gave no length."""
        if not (self.asked and self.lengths):
            return
        few, most = min(self.lengths), max(self.lengths)
        which = "the answer ends" if self.answers == 1 else f"{len(self.lengths):,} of {self.answers:,} answers end"
        length = f"{few:,}" if few == most else f"{few:,} to {most:,}"
        typer.echo(
            f"heedful: {which} with <eos> after {length} of --max-tokens {self.longest:,}, written by the model; "
            "--ignore-eos or --min-tokens makes answers longer",
            err=True,
        )


def prepare(model: str, device: str, precision: str, changes: dict[str, Any]) -> "Generator":
    """Load a language model, and override settings of its generation.

    Raises:
        InputError: there is no such model, device or precision, the model does not generate, or a setting is wrong.
    """
    from heedful.predictors.generator import Generator

    loaded = load(model, device, precision)
    generator = loaded.use_as(Generator)
    generator.config = changed(loaded, "generate", changes).generate
    return generator


def requests(generator: "Generator", prompts: Iterable[str], samples: int) -> Iterator["GenerationRequest"]:
    """Make a generation request for each sample of each prompt; warn of too long prompts and of unknown words."""
    from heedful.predictors.generator import GenerationRequest

    if generator.tokenizer.byte_ids:
        prompts = warning_if_unknown(prompts, generator.tokenizer)  # else unknown words are told below
    for number, prompt in enumerate(prompts, start=1):
        if not generator.reads_whole(prompt):
            message = f"longer than the {generator.context} tokens that the model reads; only its end is read"
            typer.echo(f"heedful: prompt {number}: {message}", err=True)
        if unknown := list(dict.fromkeys(generator.unknown(prompt))):
            message = f"not in the model's vocabulary, and read as <unk>: {' '.join(unknown)}"
            typer.echo(f"heedful: prompt {number}: {message}", err=True)
        for sample in range(samples):
            yield GenerationRequest(prompt, replace(generator.config, seed=generator.config.seed + sample))


def streamed(generator: "Generator", request: "GenerationRequest", early: EarlyEnds) -> Iterator[str]:
    """Generate one answer in parts, and note when it has ended."""
    early.note(request, (yield from generator.stream(request)))


def texts(
    generator: "Generator",
    asked: Iterator["GenerationRequest"],
    done: Callable[[int], object],
    early: EarlyEnds,
    *,
    escaped: bool,
) -> Iterator[Iterable[str]]:
    """Generate the text of each answer; with `escaped`, line feeds are escaped, so that an answer is one line."""
    for request, generation in generations(generator, asked, WINDOW, done):
        early.note(request, generation)
        yield [one_line(generation.text) if escaped else generation.text]


def json_lines(
    generator: "Generator",
    asked: Iterator["GenerationRequest"],
    window: int,
    done: Callable[[int], object],
    early: EarlyEnds,
) -> Iterator[Iterable[str]]:
    """Generate each answer as a line of JSON: prompt, text, pieces, token scores, reason and seed."""
    for request, generation in generations(generator, asked, window, done):
        early.note(request, generation)
        yield [json.dumps(fields(request, generation, generator), ensure_ascii=False)]


def generations(
    generator: "Generator", asked: Iterator["GenerationRequest"], window: int, done: Callable[[int], object]
) -> Iterator[tuple["GenerationRequest", "Generation"]]:
    """Generate answers in bounded memory, `window` requests at a time; `done` gets the number of answers just ended."""
    given, read = tee(asked)
    return zip(given, generator.generate_lines(read, window, done), strict=True)


def fields(request: "GenerationRequest", generation: "Generation", generator: "Generator") -> dict[str, Any]:
    """Return the JSON fields of a generated answer; `pieces` names each token that has a score, <eos> included."""
    from heedful.text.tokenizer import EOS

    ended = generation.reason == "eos"
    return {
        "prompt": request.prompt,
        "text": generation.text,
        "pieces": generator.tokenizer.pieces([*generation.tokens, EOS] if ended else generation.tokens),
        "token_scores": generation.token_scores,
        "reason": generation.reason,
        "seed": request.config.seed,
    }
