"""Entry point of `python -m heedful`, which runs the command line."""

from heedful.cli import main

main()
