"""The schema that the migrations make is the one that is kept beside, so that a change of it is seen in review."""

from app.embedded import RunningPostgres
from tests.support.dump_schema import GOLDEN, REGENERATE, dump_schema


def test_the_migrated_schema_is_the_golden_one(
    postgres: RunningPostgres, template_database: str
) -> None:
    kept = GOLDEN.read_text(encoding="utf-8")

    assert dump_schema(postgres, template_database) == kept, (
        f"The migrations make another schema than {GOLDEN.name} says. "
        f"If that is meant, write it anew with `{REGENERATE}` and review the difference."
    )
