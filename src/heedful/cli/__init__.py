"""The Typer application of the `heedful` command line, which imports the module of a command on first use."""

import logging
import os
import sys
import warnings
from typing import Annotated

import typer

from heedful import __version__
from heedful.cli.hints import HintedGroup
from heedful.errors import HeedfulError, RunError

TOO_LITTLE_MEMORY = (
    "out of memory: use shorter texts, a smaller beam or smaller batches (batch_tokens), or close other "
    "programs; everything that was already written is kept"
)
TORCHRUN = "TORCHELASTIC_RUN_ID"  # environment variable that torchrun sets in the processes that it starts


def print_version(is_asked: bool) -> None:
    """Print the version of heedful and exit if `--version` was given."""
    if is_asked:
        typer.echo(f"heedful {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="heedful",
    cls=HintedGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def heedful(
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a Python module with your own tasks or architectures, for models that use them. "
            "Can be repeated.",
        ),
    ] = None,
) -> None:
    """Train, use, evaluate and inspect Transformers: translators, BERT and GPT."""
    if modules:
        from heedful.config.user_code import import_user_module

        for module in modules:
            import_user_module(module)


def main() -> None:
    """Run the command line.

    Standard output is the same whether or not messages can be written to standard error.
    """
    from heedful.storage.standard_streams import standard_streams

    warnings.filterwarnings("ignore", module=r"PIL\.")  # heedful limits pixels and reports damage itself
    with standard_streams() as output:
        handler = logging.StreamHandler()  # for warnings of the library
        handler.setFormatter(logging.Formatter("heedful: %(message)s"))
        logging.getLogger("heedful").addHandler(handler)
        try:
            run()
        except SystemExit as end:
            output.flush()
            failure = output.failure
            # A broken pipe is not an error: `| head`, for example, stops reading early.
            if end.code or failure is None or isinstance(failure, BrokenPipeError):
                raise
            problem = f"cannot write to standard output: {failure.strerror or failure}"
            sys.stderr.write(RunError(problem).line())
            sys.exit(RunError.exit_code)


def run() -> None:
    """Run the command; report an error that the user can act on as a message on standard error and an exit code."""
    try:
        app()
    except HeedfulError as error:
        if TORCHRUN in os.environ:
            from heedful.distributed.reducer import end_with_error

            end_with_error(error)
        from heedful.cli.hints import name_options

        sys.stderr.write(name_options(error.line(), sys.argv))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise
        problem = f"{error.filename}: {error.strerror or error}; choose a path that you can read and write"
        sys.stderr.write(RunError(problem).line())
        sys.exit(RunError.exit_code)
    except (RuntimeError, MemoryError) as error:
        from heedful.machine import is_out_of_memory

        if not is_out_of_memory(error):
            raise
        sys.stderr.write(f"heedful: {TOO_LITTLE_MEMORY}\n")
        sys.exit(1)
