"""``python -m hermes_cli``: the command where its script is not on the path."""

from hermes_cli.main import app

app(prog_name="hermes")
