"""Print the schema in GraphQL's own language: `python -m app.schema > app/schema/schema.graphql`."""

import sys

from app.schema.ledger_schema import build_schema

sys.stdout.write(build_schema().as_str() + "\n")
