"""`python -m app.cli` is `saldo`; a server starts its workers this way."""

from app.cli import main

main()
