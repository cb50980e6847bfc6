"""`heedful translate` and `write`: translate, summarise or reply with an encoder-decoder, by line or by folder."""

import hashlib
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from inspect import Parameter, Signature, signature
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedful.cli import options
from heedful.cli.answering import AnswerForm, TextCommand, check_n_best, load, settings, warn_of_cut_outputs
from heedful.cli.constraining import ConstrainedLines, ConstraintOptions, LineConstraints
from heedful.cli.documents import DocumentTranslation, check_document_options, documents_in, output_paths, warn_of_lines
from heedful.cli.inputs import texts_argument, texts_of, warning_if_unknown
from heedful.cli.output import check_output, one_line, to_json, warn, writing
from heedful.config.keys import KEYS
from heedful.config.schema import DecodeConfig
from heedful.data.readers.files import read_lines
from heedful.data.readers.labelled import WholeRow, is_table
from heedful.documents.document import read_document
from heedful.errors import InputError, Interrupted, Terminated
from heedful.progress import show_progress
from heedful.storage.complete_folder import MANIFEST
from heedful.text.tokenizer import EOS
from heedful.wording import counted, part_of, were

if TYPE_CHECKING:
    from heedful.jobs import FolderJob
    from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator
    from heedful.predictors.translator import Alternative, Translation, Translator
    from heedful.predictors.word_alignment import Alignment
    from heedful.progress import ProgressReporter
    from heedful.text.tokenizer import Tokenizer

NO_CONSTRAINT = "none"
CHECKED_LINES = 1000  # of the first unfinished file in a folder, to see whether the vocabulary covers the language


def translate(
    text: Annotated[list[str] | None, texts_argument("Sentences to translate, or documents.")] = None,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help=f"{options.MODEL_HELP} {options.ENSEMBLE_HELP}", show_default="en-de"),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="File to translate, with one sentence per line, or a table: .tsv, .csv or .jsonl; or a folder of text "
            "files. Files may be compressed: .gz, .bz2 or .xz. - is standard input.",
        ),
    ] = None,
    input_form: options.InputForm = None,
    source_field: options.SourceField = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; if the input is a folder, the results folder.", show_default=options.STDOUT),
    ] = None,
    beam: options.Beam = None,
    penalty: Annotated[str | None, options.mirrored(KEYS.decode.penalty)] = None,
    alpha: Annotated[float | None, options.mirrored(KEYS.decode.alpha)] = None,
    n_best: options.NBest = None,
    patience: Annotated[float | None, options.mirrored(KEYS.decode.patience)] = None,
    max_extra: options.MaxExtra = None,
    batch_tokens: Annotated[int | None, options.mirrored(KEYS.decode.batch_tokens)] = None,
    shortlist: Annotated[
        int | None,
        options.mirrored(KEYS.decode.shortlist, more="Only 0 and the size of the model's own shortlist are possible."),
    ] = None,
    min_tokens: Annotated[int | None, options.mirrored(KEYS.decode.min_tokens)] = None,
    no_repeat_ngram: Annotated[int | None, options.mirrored(KEYS.decode.no_repeat_ngram)] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Text with which every output begins.", show_default=NO_CONSTRAINT)
    ] = None,
    term: Annotated[
        list[str] | None,
        typer.Option(
            help="Word or phrase that every output contains; | separates alternatives, of which one is enough. Can be "
            "repeated.",
            show_default=NO_CONSTRAINT,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            help="Word or phrase that no output contains. Can be repeated.",
            show_default=NO_CONSTRAINT,
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            help="File with terms and their translations: a table with two columns, .tsv or .csv, or a TBX file, .tbx. "
            "The translation of a line contains a target term for each source term in the line; | separates "
            "alternatives. Inflected source terms are found if the package snowballstemmer is installed.",
            show_default=NO_CONSTRAINT,
        ),
    ] = None,
    row_constraints: Annotated[
        bool,
        typer.Option(
            "--row-constraints",
            help='Read further constraints of each row of a .jsonl file from its keys "prefix", "terms" and '
            '"forbidden": a text, or lists of texts, in which a list in "terms" has alternatives.',
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each sentence, with tokens and scores.")
    ] = False,
    alignments: Annotated[
        Path | None,
        typer.Option(
            help="File to write word alignments to, one line per sentence: the numbers, from 0, of linked source and "
            "target words, such as 0-0 1-2. With --json, each translation also has its alignment. Not for folders."
        ),
    ] = None,
    shard_lines: Annotated[
        int | None,
        typer.Option(
            help="For a folder: number of lines that a process translates at a time, a multiple of 1024. A process "
            "that is killed loses at most this many. Never changes results.",
            show_default="4096",
        ),
    ] = None,
    ray: Annotated[bool, typer.Option("--ray", help="Translate a folder on the machines of a Ray cluster.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace documents with their translations.", show_default=False)
    ] = False,
    literals: Annotated[
        bool,
        typer.Option(
            help="Copy unchanged what is not natural language (URLs, tags, placeholders, long numbers, bullets, emoji, "
            "leading and trailing spaces); translate text in capitals by way of sentence case; try lines of several "
            "sentences sentence by sentence as well; and collapse words repeated more than three times in a row. Not "
            "with --json, nor for models that do not translate; `evaluate` scores without this."
        ),
    ] = True,
    device: options.Device = "auto",
    _force: options.Force = False,
    precision: options.Precision = "float32",
    engine: options.Engine = "auto",
    _verbose: options.Verbose = False,
) -> None:
    r"""Translate sentences, the lines of files, a table column, standard input, or documents.

    Sentences, lines and rows have one output line per input. A text that is the
    name of a document is translated as a whole, for example notes.html to
    notes.de.html, or to the file or folder that --output names: paragraphs are
    split into sentences, and markup, blanks and everything that is not text are
    kept. Documents are .txt, .md, .html, .docx, .pptx, .odt, .odp, .epub, .srt,
    .vtt, .json, .yaml, .po, .xliff, Android .xml and .resx files. After an
    interruption, the same command resumes the translation.

    With a folder as --input, every file in it is translated, line by line, to a file of the
    same name in the folder --output. After an interruption, the same command
    resumes the job. Commands that run at the same time share the work, on any
    machine that has access to both folders.

    In a table, the sentences are read from the column that the model's recipe
    names or, if the table does not have it, from a column named after the
    model's source language, or from the one that `heedful init` would choose as
    the text. An output file whose name ends in .csv, .tsv or .jsonl is a table:
    the columns of the input, and "translation". In plain-text output, a line
    feed inside a translation is written as \n, a carriage return as \r, and a
    backslash before n, r or a backslash as \\.

    A blank line stays blank. With --json, each line is
    {"translations": [...], "truncated": false} with the best translation
    first, each {"text", "score", "pieces", "token_scores", "complete"}.
    The score of a token is the natural logarithm of its probability; the
    score of a translation is the sum of its token scores divided by the
    length penalty. "complete" is false if a translation reached the length
    limit; "truncated" is true if only the beginning of an overlong source line
    was translated.

    With --alignments, words are separated by spaces; punctuation at either end
    of a word, except for an apostrophe, is a word by itself, and so is each
    character of a script without spaces, such as Chinese. With --json, each
    translation also has "alignment": for each link, a list of four numbers, the
    begin and end of the source word and of the target word in characters.
    """
    check_n_best(n_best, "translation", as_json=as_json)
    search = settings(locals(), DecodeConfig)
    constraints = ConstraintOptions.of(prefix, term, forbid, glossary, row_constraints)
    models = models or ["en-de"]
    documents = documents_in(text)
    if documents:
        others = {"--input": source, "--input-format": input_form, "--column": source_field, "--json": as_json}
        others |= {"--shard-lines": shard_lines is not None, "--ray": ray, "--no-literals": not literals}
        others |= {"--alignments": alignments, "--prefix": prefix, "--term": term, "--row-constraints": row_constraints}
        check_document_options(documents[0], others)
        translator = load_translator(models, device, precision, engine, search)
        translate_documents(documents, output, models, precision, translator, constraints, in_place=in_place)
    elif in_place:
        raise InputError("--in-place is for documents; give the names of documents, or leave it out")
    elif shard_lines is not None or ray or (source and source.is_dir()):
        from heedful.jobs import SHARD_LINES, check_output_folder, check_shard_lines

        folders = check_folders(text, source, output, "--ray" if ray else "--shard-lines")
        if source_field or input_form:
            option = "--column" if source_field else "--input-format"
            raise InputError(
                f"{option} is for a single file, but the files in a folder are read as lines; leave it out"
            )
        if alignments:
            raise InputError(
                f"--alignments {alignments}: is for a single file, but --input {source} is a folder; leave "
                "--alignments out, or translate each file as --input FILE"
            )
        constraints.check_rows(None)
        lines = SHARD_LINES if shard_lines is None else shard_lines
        check_output_folder(*folders)  # before the model is loaded
        check_shard_lines(lines)
        translate_folder(
            FolderTranslation(
                *folders, models, device, precision, engine, search, as_json, lines, literals, constraints
            ),
            ray,
        )
    else:
        warn_of_lines(source)
        command = TextCommand("translating", text, source, input_form, output, source_field, as_json=as_json)
        check_output(alignments, source, output, option="--alignments")
        if alignments and output and alignments.resolve() == output.resolve():
            raise InputError(f"--alignments {alignments}: is also --output; choose another file")
        constraints.check_rows(command.source)
        translator = load_translator(models, device, precision, engine, search)
        translate_texts(command, translator, " and ".join(models), source_field, literals, alignments, constraints)


def write(**arguments: Any) -> None:
    r"""Write a summary, a reply or an answer for each text; one output line per input.

    This is `heedful translate` for models for tasks other than translation. The
    turns of a dialogue are on one line, separated by tabs.

    In a table, the texts are read from the column that the model's recipe names
    or, if the table does not have it, from the one that `heedful init` would
    choose as the text; --column selects another. An output file whose name ends in
    .csv, .tsv or .jsonl is a table: the columns of the input, and "answer". In
    plain-text output, a line feed inside an answer is written as \n, a carriage
    return as \r, and a backslash before n, r or a backslash as \\.
    """
    translate(**arguments)


# The arguments and options of `translate` whose descriptions are about translation; others are the same for `write`.
WRITE_PARAMETERS = {
    "text": Annotated[list[str] | None, texts_argument("Texts to answer or to summarise.")],
    "models": Annotated[list[str], typer.Option("--model", help=f"{options.MODEL_HELP} {options.ENSEMBLE_HELP}")],
    "source": Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="File with one text per line, or a table: .tsv, .csv or .jsonl; or a folder of text files. Files may "
            "be compressed: .gz, .bz2 or .xz. - is standard input.",
        ),
    ],
    "as_json": Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each text, with the answer, its tokens and scores.")
    ],
    "shard_lines": Annotated[
        int | None,
        typer.Option(
            help="For a folder: number of lines that a process reads at a time, a multiple of 1024. A process that is "
            "killed loses at most the answers to this many. Never changes results.",
            show_default="4096",
        ),
    ],
    "ray": Annotated[bool, typer.Option("--ray", help="Process a folder on the machines of a Ray cluster.")],
}


def write_parameters() -> Iterator[Parameter]:
    """Yield the parameters of `write`: those of `translate`, except that a model is required."""
    for name, parameter in signature(translate).parameters.items():
        if name not in ("literals", "alignments", "glossary", "in_place"):  # apply only to models that translate
            annotation = WRITE_PARAMETERS.get(name, parameter.annotation)
            default = Parameter.empty if name == "models" else parameter.default
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


vars(write)["__signature__"] = Signature(list(write_parameters()))


def translate_texts(
    command: TextCommand,
    translator: "Translator",
    model: str,
    source_field: str | None,
    literals: bool,
    alignments: Path | None,
    options: ConstraintOptions,
) -> None:
    from heedful.predictors.translator import WINDOW

    window = 1 if command.is_typed else WINDOW
    counts = OutputCounts()
    if alignments:
        translator.align([])  # an error if the model has no attention
    constraints = options.open(translator)
    rows = command.rows(texts_of(translator.recipe, source_field))

    def answers(copies: "Iterator[WholeRow]", progress: "ProgressReporter") -> "Iterator[AlignedTranslation]":
        texts, of_texts = constraints.each(copies, rows.columns)
        texts, sources = tee(warning_if_unknown(texts, translator.tokenizers.source))
        lines = line_translator(translator, literals and not command.as_json)
        each = of_texts if options else None
        translations = lines.translate_lines(texts, window, progress.advance, constraints=each)
        translations = constraints.checked(translations)
        if alignments:
            return aligned(translator, translations, sources, window)
        return (AlignedTranslation(translation) for translation in translations)

    column = "answer" if translator.recipe and translator.recipe.task != "translation" else "translation"
    form = AnswerForm[AlignedTranslation](
        columns=(column,),
        line=lambda answer: one_line(answer.translation.text),
        cells=lambda answer: {column: answer.translation.text},
        json=lambda answer: aligned_fields(answer, translator.tokenizers.target) | constraints.fields(),
    )
    with writing(alignments) if alignments else nullcontext() as stream:

        def note(row: "WholeRow", answer: AlignedTranslation) -> None:
            counts.add(answer.translation, row.line)
            if stream:
                best = answer.alignments[0] if answer.alignments else ""
                stream.write(f"{best}\n".encode())

        command.answer(rows, answers, form, note)
    counts.warn(model, translator)
    constraints.report()


class AlignedTranslation(NamedTuple):
    """Translation of a line, and the alignment of each alternative with the line; none if they are not requested."""

    translation: "Translation"
    alignments: "Sequence[Alignment]" = ()


def aligned(
    translator: "Translator", translations: "Iterator[Translation]", sources: Iterator[str], window: int
) -> Iterator[AlignedTranslation]:
    """Align translations with their sources, `window` at a time."""
    while chunk := list(islice(zip(translations, sources, strict=False), window)):
        pairs = [(source, each.text) for translation, source in chunk for each in translation.alternatives]
        alignments = iter(translator.align(pairs))
        for translation, _ in chunk:
            yield AlignedTranslation(translation, list(islice(alignments, len(translation.alternatives))))


class OutputCounts:
    """Counts of lines, of their translations, and of the lines and translations that need a warning."""

    def __init__(self) -> None:
        self.lines = self.translations = self.empty = self.cut = 0
        self.truncated: list[int] = []  # numbers of the lines whose end was not read

    def add(self, translation: "Translation", line: int = 0) -> None:
        self.lines += 1
        if translation.truncated:
            self.truncated.append(line)
        if translation.alternatives:  # a blank line has none
            self.translations += 1
            self.empty += not translation.text
            self.cut += not translation.complete

    def warn(self, model: str, translator: "Translator") -> None:
        """Warn about lines that were too long, and translations that were cut at the length limit or are empty."""
        from heedful.predictors.outputs import CutOutputs

        if self.truncated:
            count, first = len(self.truncated), self.truncated[0]
            location = f" ({'' if count == 1 else 'first: '}line {first:,})" if first else ""
            warn(
                f"{part_of(count, self.lines, 'lines')} {were(count)} truncated{location}: only the first "
                f"{translator.longest_source - 1} tokens of a line are translated; split long lines into sentences"
            )
        warn_of_cut_outputs(CutOutputs(self.translations, self.cut), translator)
        if self.empty:
            empty = part_of(self.empty, self.translations, "translations")
            warn(
                f"{model}: {empty} {were(self.empty)} empty; a model that was not trained long enough may generate "
                "nothing"
            )


def load_translator(
    models: Sequence[str], device: str, precision: str, engine: str, search: dict[str, Any]
) -> "Translator":
    """Load a translator or, if there are several models, an ensemble of translators."""
    from heedful.convert.engine import open_predictor
    from heedful.predictors.ctranslate2_translator import CTranslate2Translator
    from heedful.predictors.translator import Translator

    model, *others = models
    translator = open_predictor(CTranslate2Translator, model, engine, device, precision, search, others)
    return translator or load(model, device, *others).use_as(Translator).with_options(**search)


def line_translator(translator: "Translator", literals: bool) -> "Translator | LiteralPreservingTranslator":
    """Return a translator of lines; with `literals`, and if the model translates, it leaves literals unchanged."""
    from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator

    translates = translator.recipe is not None and translator.recipe.task == "translation"
    return LiteralPreservingTranslator(translator) if literals and translates else translator


def translation_fields(translation: "Translation", tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the JSON fields of a translation: the alternatives, best first, and whether the source was truncated."""
    alternatives = [alternative_fields(alternative, tokenizer) for alternative in translation.alternatives]
    return {"translations": alternatives, "truncated": translation.truncated}


def aligned_fields(answer: AlignedTranslation, tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the JSON fields of a translation, with the links of each alternative if it is aligned."""
    fields = translation_fields(answer.translation, tokenizer)
    for alternative, alignment in zip(fields["translations"], answer.alignments, strict=False):
        alternative["alignment"] = [[*link.source, *link.target] for link in alignment.links]
    return fields


def alternative_fields(alternative: "Alternative", tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the JSON fields of an alternative translation; `pieces` has each token with a score, including <eos>."""
    hypothesis = alternative.hypothesis
    return {
        "text": alternative.text,
        "score": hypothesis.score,
        "pieces": tokenizer.pieces([*hypothesis.tokens, EOS] if hypothesis.complete else hypothesis.tokens),
        "token_scores": list(hypothesis.token_scores),
        "complete": hypothesis.complete,
    }


@dataclass(frozen=True)
class FolderTranslation:
    """Arguments of a process that translates the files of a folder: the folders, the model and the search settings."""

    source: Path
    output: Path
    models: Sequence[str]  # one, or those of an ensemble
    device: str
    precision: str
    engine: str
    search: dict[str, Any]  # settings that differ from the model's
    as_json: bool  # whether results are lines of JSON
    shard_lines: int  # number of lines that a worker translates at a time
    literals: bool  # whether plain results keep what is not natural language unchanged
    constraints: ConstraintOptions = field(default_factory=ConstraintOptions)

    def open(self, done: Callable[[int], object] = lambda _: None) -> tuple["FolderJob", "FolderTranslator"]:
        """Load the model, and start or take part in the job; a job with other settings or texts is rejected."""
        from heedful.jobs import open_job

        translator = load_translator(self.models, self.device, self.precision, self.engine, self.search)
        settings = {
            **result_settings(self.models, translator, self.precision),
            "device": translator.device.type,
            "json": self.as_json,
            **self.constraints.facts(),
        }
        lines = line_translator(translator, self.literals and not self.as_json)
        if lines is not translator:
            settings["literals"] = True
        job = open_job(self.source, self.output, settings, self.shard_lines, done)
        return job, FolderTranslator(translator, lines, self.as_json, self.constraints.open(translator))


@dataclass
class FolderTranslator:
    """Translator of a job's lines, which also counts what deserves a warning."""

    translator: "Translator"
    lines: "Translator | LiteralPreservingTranslator"
    as_json: bool
    constraints: LineConstraints
    counts: OutputCounts = field(default_factory=OutputCounts)

    def __call__(self, lines: Iterable[str], done: Callable[[int], object]) -> Iterator[str]:
        from heedful.jobs import WINDOW

        rows = (WholeRow(number, (line,), ()) for number, line in enumerate(lines, start=1))
        texts, of_texts = self.constraints.each(rows, ())
        constraints = of_texts if self.constraints.options else None
        translations = self.lines.translate_lines(texts, WINDOW, done, constraints=constraints)
        for translation in self.constraints.checked(translations):
            self.counts.add(translation)
            if self.as_json:
                fields = translation_fields(translation, self.translator.tokenizers.target)
                yield to_json(fields | self.constraints.fields())
            else:
                yield one_line(translation.text)


def result_settings(models: Sequence[str], translator: "Translator", precision: str) -> dict[str, Any]:
    """Return what translations depend on besides the texts, so that a job is resumed only with the same settings."""
    from heedful.checkpoint import find_model

    manifests = [(find_model(model) / MANIFEST).read_bytes() for model in models]
    return {
        "model": " ".join(hashlib.sha256(manifest).hexdigest() for manifest in manifests),
        "precision": precision,
        **asdict(translator.config),
    }


def translate_documents(
    documents: Sequence[Path],
    output: Path | None,
    models: Sequence[str],
    precision: str,
    translator: "Translator",
    options: ConstraintOptions,
    *,
    in_place: bool,
) -> None:
    """Translate documents one after the other, after checking all of them."""
    from heedful.predictors.document_translator import DocumentTranslator
    from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator

    recipe = translator.recipe
    if recipe is None or recipe.task != "translation":
        raise InputError(f"{documents[0]}: the model does not translate, so it cannot translate documents")
    languages = recipe.data.source_language, recipe.data.target_language
    outputs = output_paths(documents, output, *languages, in_place=in_place)
    constraints = options.open(translator)
    identity = {**result_settings(models, translator, precision), **options.facts()}
    lines = ConstrainedLines(LiteralPreservingTranslator(translator), constraints)
    translation = DocumentTranslation(DocumentTranslator(translator, lines), identity)
    counts = OutputCounts()
    for document in documents:
        read_document(document)  # so that errors are found before the first translation
    with stopping("interrupted; the same command resumes the translation"):
        for document, path in zip(documents, outputs, strict=True):
            translation.translate(document, path, counts.add)
    counts.warn(" and ".join(models), translator)
    constraints.report()


def translate_folder(task: FolderTranslation, ray: bool) -> None:
    """Translate the files of a folder until all are done, by this process, others, or the machines of a Ray cluster."""
    message = f"interrupted; the finished translations are in {task.output}, and the same command resumes the job"
    with stopping(message):
        with show_progress(f"reading {task.source}", "lines") as reading:
            job, translator = task.open(reading.advance)
        # Warn if the vocabulary does not cover the beginning of the first file that is not translated yet.
        for file in job.unfinished()[:1]:
            beginning = islice(read_lines(task.source / file), CHECKED_LINES)
            for _ in warning_if_unknown(beginning, translator.translator.tokenizers.source):
                pass
        missing = sum(shard.lines for file in job.plan.files for shard in job.missing(file))
        done = job.plan.lines - missing
        with show_progress(f"translating {task.source}", "lines", job.plan.lines, done) as progress:
            if ray:
                from heedful.jobs.on_ray import run_on_ray

                run_on_ray(job, task.open, progress)
            else:
                from heedful.jobs import Worker

                Worker(job, progress).run(translator)
    translator.counts.warn(" and ".join(task.models), translator.translator)
    translator.constraints.report()
    files = counted(len(job.plan.files), "files")
    verb = "is" if len(job.plan.files) == 1 else "are"
    typer.echo(f"{files} with {counted(job.plan.lines, 'lines')} {verb} in {task.output}", err=True)


@contextmanager
def stopping(message: str) -> Iterator[None]:
    """Turn Ctrl-C or SIGTERM into an error that says how to resume, once the block has released its claims."""
    is_terminated = False

    def stop(*_: object) -> None:
        nonlocal is_terminated
        is_terminated = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt as error:
        raise (Terminated if is_terminated else Interrupted)(message) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def check_folders(texts: list[str] | None, source: Path | None, output: Path | None, option: str) -> tuple[Path, Path]:
    """Check that input and output are folders, as `option` requires, and return both."""
    if source is None or not source.is_dir():
        raise InputError(f"{option} is for a folder of files; give a folder as --input, or leave {option} out")
    if texts:
        raise InputError("texts were given together with --input; use only one of them")
    if tables := sorted(path.name for path in source.iterdir() if path.is_file() and is_table(path)):
        raise InputError(
            f"--input {source}: {tables[0]} is a table, but only the text files in a folder are translated; pass each "
            "table as --input FILE, and leave only text files in the folder"
        )
    if output is None:
        raise InputError(f"--input {source}: is a folder, so --output must be a folder for the results")
    return source, output
