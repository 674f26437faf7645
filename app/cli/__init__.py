"""The command `saldo`: what whoever runs the ledger types. Its exit status is 0 only when all is well."""

import socket
import sys
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from pydantic import ValidationError

from app.cli.errors import EXPECTED, CommandError
from app.ledger.model import Scope
from app.settings import Settings, describe_problem, load_settings
from app.tokens import SUBJECT_LIMIT

commands: Final = typer.Typer(
    name="saldo",
    help="A wallet ledger: double entry on PostgreSQL, GraphQL with live subscriptions.\n\n"
    "Settings come from SALDO_* variables. Without SALDO_DATABASE_URL every command works with "
    "an embedded PostgreSQL below .saldo/, which it finds running or starts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command that the arguments name; every expected failure is said on standard error, each reason in one line."""
    try:
        commands()
    except EXPECTED as error:
        sys.stderr.writelines(f"saldo: {line}\n" for line in str(error).splitlines())
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        release = version("saldo")
    except PackageNotFoundError:
        release = "(not installed)"
    typer.echo(f"saldo {release}")
    raise typer.Exit


@commands.callback()
def for_every_command(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the release.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Take the options that belong to no command."""


@commands.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on, instead of SALDO_HOST.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port, instead of SALDO_PORT; 0 takes a free one."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Server processes, instead of SALDO_WORKERS.")
    ] = None,
) -> None:
    """Serve the API until SIGINT or SIGTERM."""
    from app.cli.serving import serve as run  # noqa: PLC0415 - `saldo token` needs no server

    _exit(run(_settings(host=host, port=port, workers=workers)))


@commands.command()
def relay() -> None:
    """Deliver events, for servers that run with SALDO_RELAY=off; several may run."""
    from app.cli.relaying import relay as run  # noqa: PLC0415 - see serve

    _exit(run(load_settings()))


@commands.command()
def migrate() -> None:
    """Bring the database to the newest schema, as the owner that SALDO_OWNER_DATABASE_URL names."""
    from app.cli.database import bring_up_to_date, database_of  # noqa: PLC0415 - see serve

    with database_of(load_settings()) as settings:
        bring_up_to_date(settings)
    typer.echo("The schema is up to date.")


@commands.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.csv",
            help="CSV in UTF-8 with the columns code, owner, kind, currency and amount, which its first line names.",
        ),
    ],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, say what would be booked, and stop."),
    ] = False,
) -> None:
    """Open accounts with their opening balances; what is booked already is not booked again."""
    from app.cli.importing import import_file  # noqa: PLC0415 - see serve

    _exit(import_file(load_settings(), file, dry_run=dry_run))


@commands.command()
def expire_holds() -> None:
    """Release every hold whose time is over, as servers do by themselves, and print how many there were."""
    from app.cli.expiring import expire_holds as run  # noqa: PLC0415 - see serve

    _exit(run(load_settings()))


@commands.command()
def token(
    sub: Annotated[str, typer.Option(help="Subject: who the bearer is.")],
    scope: Annotated[
        list[Scope], typer.Option(help="What the bearer may do; may be given several times.")
    ],
    ttl: Annotated[int, typer.Option(min=1, help="Seconds until it expires.")] = 3_600,
) -> None:
    """Print a token and nothing else, signed with SALDO_JWT_SECRET or the secret below the data directory."""
    from app.cli.tokens import issue_token  # noqa: PLC0415 - see serve

    if not 0 < len(sub) <= SUBJECT_LIMIT or not sub.isprintable():
        raise CommandError(f"--sub must have 1 to {SUBJECT_LIMIT} printable characters.")
    typer.echo(issue_token(load_settings(), sub, frozenset(scope), timedelta(seconds=ttl)))


@commands.command()
def demo(
    url: Annotated[
        str | None,
        typer.Option(
            help="Address of the server, http:// or https://; http://127.0.0.1:$SALDO_PORT by default."
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="The server's SALDO_JWT_SECRET, where it isn't this folder's."),
    ] = None,
) -> None:
    """Play a story of four wallets against a running server, and prove at its end that the books add up."""
    from app.cli.playing import play_demo  # noqa: PLC0415 - see serve

    _exit(play_demo(_settings(jwt_secret=secret), url))


@commands.command(hidden=True)
def worker(descriptor: int, number: int, directory: Path) -> None:
    """Serve on an inherited socket; started by `saldo serve --workers`."""
    from app.cli.serving import serve_as_worker  # noqa: PLC0415 - see serve
    from app.web.prometheus import Siblings  # noqa: PLC0415 - see serve

    listener = socket.socket(fileno=descriptor)
    _exit(serve_as_worker(load_settings(), listener, Siblings(directory, number)))


def _settings(**options: object) -> Settings:
    """Read the settings; an option that was given takes the place of its variable."""
    settings = load_settings()
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings.model_validate({**settings.model_dump(), **given})
    except ValidationError as error:
        raise CommandError(describe_problem(error.errors()[0])) from None


def _exit(all_is_well: bool) -> NoReturn:
    raise typer.Exit(0 if all_is_well else 1)
