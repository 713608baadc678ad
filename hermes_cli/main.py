"""The command ``hermes``: every subcommand, and how their errors reach a person."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hermes_cli import (
    calibrating,
    hosts,
    importing,
    knowledge,
    memories,
    nightly,
    reembedding,
    reindexing,
    remembering,
    serving,
)
from hermes_cli.console import fail, never_choke_on_encoding, stdout
from hermes_cli.demo import command as demo
from hermes_cli.doctor import command as doctor
from hermes_cli.services import command as services
from hermes_memory import __version__
from hermes_memory.errors import HermesError

EXIT_ERROR = 2


class Commands(TyperGroup):
    """Domain errors end as one line and exit code 2, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except HermesError as error:
            fail(error.detail)
            raise typer.Exit(EXIT_ERROR) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals hold what people said
    help="Long-term memory for assistants: bounded, with evidence, and with facts that only the user unfreezes.",
    epilog="A command works on the directory --data, or over HTTP on the server that --url names.",
)


def _version(wanted: bool) -> None:
    if wanted:
        stdout().print(f"hermes-memory {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    never_choke_on_encoding()


@app.command("version")
def _version_command() -> None:
    """Show the version."""
    _version(True)


app.command("serve")(serving.serve)
app.command("demo")(demo.demo)
app.command("remember")(remembering.remember)
app.command("recall")(remembering.recall)
app.command("import")(importing.import_files)
app.command("memories")(memories.list_memories)
app.command("why")(memories.why)
app.command("forget")(memories.forget)
app.command("doctor")(doctor.doctor)
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(services.app, name="services")
app.add_typer(hosts.app, name="hosts")
app.command("calibrate")(calibrating.calibrate)
app.command("reembed")(reembedding.reembed)
app.command("reindex")(reindexing.reindex)
app.command("nightly")(nightly.nightly)
