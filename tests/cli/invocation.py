"""Commands, called in this process."""

from typer.testing import CliRunner, Result

from heedful.cli import app


def invoke(*arguments: object, stdin: str | bytes = "") -> Result:
    """What `heedful ARGUMENTS` prints and how it ends; an error that `main` would tell is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
