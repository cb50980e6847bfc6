"""`heedful generate`: prompts in, what a language model says after them out."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.translate import MODELS, Precision, changed, lines, load, writing
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.decode.generator import Generation, Generator, Request

WINDOW = 1024  # requests that are read before their answers are written


def setting(description: str) -> Any:
    """An option for a field of `GenerateConfig`."""
    return typer.Option(help=description, show_default=MODELS)


def generate(
    model: Annotated[str, typer.Option(help="A model folder, a run, or the name of a model in the box.")],
    prompt: Annotated[list[str] | None, typer.Argument(help="Prompts.", show_default="standard input")] = None,
    source: Annotated[Path | None, typer.Option("--input", help="A file, one prompt a line; plain or .gz.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write.", show_default="standard output")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers to each prompt, with seeds that count up.")] = 1,
    seed: Annotated[int | None, setting("Another seed gives another answer.")] = None,
    max_tokens: Annotated[int | None, setting("Longest answer, in tokens.")] = None,
    temperature: Annotated[float | None, setting("Below 1 bolder, above 1 wilder; 0: the likeliest.")] = None,
    top_k: Annotated[int | None, setting("Choose among the likeliest so many tokens.")] = None,
    top_p: Annotated[float | None, setting("Among the fewest of this probability.")] = None,
    min_p: Annotated[float | None, setting("Among those with this share of the likeliest's.")] = None,
    typical: Annotated[float | None, setting("Among the least unusual of this probability.")] = None,
    repetition_penalty: Annotated[float | None, setting("Divides logits of tokens seen; 1: none.")] = None,
    frequency_penalty: Annotated[float | None, setting("Taken off a logit for each use of its token.")] = None,
    presence_penalty: Annotated[float | None, setting("Taken off once if it was used.")] = None,
    no_repeat_ngram: Annotated[int | None, setting("No sequence of so many tokens comes twice.")] = None,
    stop: Annotated[list[str] | None, setting("A text that ends an answer. Repeatable.")] = None,
    batch_tokens: Annotated[int | None, setting("Tokens held at once.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line is a JSON object with scores and pieces.")] = False,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, mps or auto.")] = "auto",
    precision: Precision = "float32",
) -> None:
    """Continue prompts: sentences, a file or standard input, one a line; an empty one begins a document.

    What comes after the prompt is written, and a line feed. A single answer,
    and answers to what is typed at a terminal, appear as they are said. With
    --json a line is {"text", "pieces", "token_scores", "reason", "seed"}. The
    score of a token is the natural logarithm of its probability before the
    choice was narrowed; the reason for the end is eos, stop or length.
    """
    if prompt and source:
        raise InputError("there are prompts and --input; give one of them")
    if output and (output.is_dir() or not output.parent.is_dir()):
        raise InputError(f"--output {output}: name a file, in a folder that is there")
    changes = {
        "max_tokens": max_tokens,
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
    generator = prepare(model, device, precision, chosen)
    typed = not (prompt or source) and sys.stdin is not None and sys.stdin.isatty()
    if typed:
        typer.echo("Type a prompt a line; Ctrl-D ends.", err=True)
    live = typed or (prompt is not None and len(prompt) * samples == 1)
    asked = requests(generator, lines(prompt, source), samples)
    with writing(output) as stream:
        for answer in json_lines(generator, asked, live) if as_json else texts(generator, asked, live):
            for part in answer:
                stream.write(part.encode())
                stream.flush()
            stream.write(b"\n")
            stream.flush()


def prepare(model: str, device: str, precision: str, changes: dict[str, Any]) -> "Generator":
    """Load a model and change how it generates.

    Raises:
        InputError: there is no such model, device or precision, it does not generate, or the changes cannot work.
    """
    from heedful.decode.generator import Generator

    loaded = load(model, device, precision)
    generator = loaded.use_as(Generator)
    generator.config = changed(loaded, "generate", changes).generate
    return generator


def requests(generator: "Generator", prompts: Iterable[str], samples: int) -> Iterator["Request"]:
    """Ask for each prompt as many times as there are samples, and tell what of it is not read."""
    from heedful.decode.generator import Request

    for number, prompt in enumerate(prompts, start=1):
        if not generator.reads_whole(prompt):
            message = f"longer than the {generator.context} tokens that the model reads; only its end is read"
            typer.echo(f"heedful: prompt {number}: {message}", err=True)
        if unknown := list(dict.fromkeys(generator.unknown(prompt))):
            message = f"not in the model's vocabulary, and read as <unk>: {' '.join(unknown)}"
            typer.echo(f"heedful: prompt {number}: {message}", err=True)
        for sample in range(samples):
            yield Request(prompt, replace(generator.config, seed=generator.config.seed + sample))


def texts(generator: "Generator", asked: Iterator["Request"], live: bool) -> Iterator[Iterable[str]]:
    """The parts of each answer: as they are said, or all at once."""
    if live:
        return map(generator.stream, asked)
    return ([generation.text] for _, generation in generations(generator, asked, WINDOW))


def json_lines(generator: "Generator", asked: Iterator["Request"], live: bool) -> Iterator[Iterable[str]]:
    """Each answer as `generate` describes it."""
    for request, generation in generations(generator, asked, 1 if live else WINDOW):
        yield [json.dumps(fields(request, generation, generator), ensure_ascii=False)]


def generations(
    generator: "Generator", asked: Iterator["Request"], window: int
) -> Iterator[tuple["Request", "Generation"]]:
    """Answer in bounded memory, a window at a time."""
    while some := list(islice(asked, window)):
        yield from zip(some, generator.generate(some), strict=True)


def fields(request: "Request", generation: "Generation", generator: "Generator") -> dict[str, Any]:
    """What JSON says of an answer; `pieces` names each token that has a score, <eos> included."""
    from heedful.text.tokenizer import EOS

    ended = generation.reason == "eos"
    return {
        "text": generation.text,
        "pieces": generator.tokenizer.pieces([*generation.tokens, EOS] if ended else generation.tokens),
        "token_scores": generation.token_scores,
        "reason": generation.reason,
        "seed": request.config.seed,
    }
