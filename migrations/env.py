"""Runs migrations over a connection that `app.migrate` hands over, one transaction for each revision."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transaction_per_migration=True,
    version_table="schema_version",
)
with context.begin_transaction():
    context.run_migrations()
