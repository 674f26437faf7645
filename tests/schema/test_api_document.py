"""The API's document: its examples, executed page after page against an empty ledger, and its tables."""

import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from app.ledger.errors import Refusal, RefusalCode
from app.ledger.model import Scope
from app.ledger.money import Money
from app.ledger.movements.postings import BUILT_IN_TYPES
from app.schema import build_schema
from tests.schema.server import ApiServer, JsonObject
from tests.support.postgres import TestDatabase, connect

ENTRY: Final = Path(__file__).parents[2] / "docs" / "api.md"
"""The page that says what holds everywhere and lists the others in their order."""

_PAGE = re.compile(r"\]\((api/[a-z-]+\.md)\)")
_BLOCK = re.compile(r"^```(graphql|json)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"<[a-z' ]+>")


@dataclass(frozen=True, slots=True)
class Example:
    """One operation with the answer that the document promises."""

    place: str
    """Page and line, for who has to mend it."""
    subject: str
    scopes: tuple[Scope, ...]
    event: str
    """What happens before it, in the words of `EVENTS`; empty where that is nothing."""
    query: str
    variables: str
    answer: JsonObject


def pages() -> list[Path]:
    """Find the pages in the order in which the entry lists them."""
    named = dict.fromkeys(_PAGE.findall(ENTRY.read_text(encoding="utf-8")))
    return [ENTRY, *(ENTRY.parent / name for name in named)]


def examples() -> list[Example]:
    """Read the document: a block of GraphQL that names who asks, maybe one of variables, and one of the answer."""
    return [example for page in pages() for example in _examples_of(page)]


def _examples_of(page: Path) -> list[Example]:
    text = page.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    found: list[Example] = []
    while blocks:
        block = blocks.pop(0)
        language, who, query = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        place = f"{page.name}, line {line}"
        assert language == "graphql", place
        variables = "{}"
        if blocks[0][2].strip() == "variables":
            variables = blocks.pop(0)[3]
        language, info, answer = blocks.pop(0).groups()
        assert (language, info) == ("json", ""), place
        caller, _, event = who.strip().partition(", ")
        subject, *scopes = caller.split()
        granted = tuple(Scope(scope) for scope in scopes)
        found.append(
            Example(place, subject, granted, event, query, variables, orjson.loads(answer))
        )
    return found


async def let_holds_run_out(_server: ApiServer, database: TestDatabase) -> None:
    """Let the time of the open holds be over, as if they had been placed long ago."""
    async with connect(database.owner_url) as connection:
        await connection.execute(
            "update hold set expires_at = now() where status = 'OPEN' and expires_at is not null"
        )


async def release_holds(server: ApiServer, _database: TestDatabase) -> None:
    """Do what servers do by themselves with holds whose time is over."""
    assert await server.books.upkeep.expire_holds() > 0


EVENTS: Final[Mapping[str, Callable[[ApiServer, TestDatabase], Awaitable[None]]]] = {
    "once its time is over": let_holds_run_out,
    "once it is released": release_holds,
}


def filled(text: str, known: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: known[match[0]], text)


def compare(promised: Any, actual: Any, known: dict[str, str]) -> None:
    """Compare an answer with the document; a placeholder is whatever it was when it first appeared."""
    if isinstance(promised, str) and _PLACEHOLDER.fullmatch(promised):
        assert isinstance(actual, str)
        assert known.setdefault(promised, actual) == actual
    elif isinstance(promised, dict):
        assert list(promised) == list(actual)  # pyright: ignore[reportUnknownArgumentType]
        for name in promised:  # pyright: ignore[reportUnknownVariableType]
            compare(promised[name], actual[name], known)
    elif isinstance(promised, list):
        assert len(promised) == len(actual)  # pyright: ignore[reportUnknownArgumentType]
        for one, other in zip(promised, actual, strict=True):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            compare(one, other, known)
    else:
        assert promised == actual


async def answered(server: ApiServer, example: Example, known: dict[str, str]) -> JsonObject:
    token = server.token(example.subject, *example.scopes)
    query, variables = filled(example.query, known), filled(example.variables, known)
    if not query.startswith("subscription"):
        return (await server.post(query, orjson.loads(variables), token=token)).json()
    async with server.socket(token) as socket:
        await socket.subscribe(query, **orjson.loads(variables))
        return {"data": await socket.next()}


async def test_every_example_is_true(
    server: ApiServer, database_url: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A credit to a striped account goes to one of its children by chance: here by a chance that repeats itself, and of
    # which nobody else takes a share.
    monkeypatch.setattr("app.ledger.posting.hot.random", random.Random(4))
    known: dict[str, str] = {}
    for example in examples():
        if example.event:
            await EVENTS[example.event](server, database_url)
        answer = await answered(server, example, known)
        try:
            compare(example.answer, answer, known)
        except AssertionError as error:
            error.add_note(f"{example.place}: {orjson.dumps(answer).decode()}")
            raise


def test_every_operation_has_an_example() -> None:
    text = " ".join(example.query for example in examples())
    core = build_schema().core
    for root in (core.query_type, core.mutation_type, core.subscription_type):
        assert root is not None
        for name in root.fields:
            assert re.search(rf"\b{name}\b", text), name


def test_every_page_is_listed() -> None:
    assert set(pages()) == {ENTRY, *(ENTRY.parent / "api").iterdir()}


def test_every_refusal_is_explained() -> None:
    text = ENTRY.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| .* \| (yes|no) \|$", text, re.MULTILINE)

    assert [code for code, _ in rows] == list(RefusalCode)
    retryable = {refusal.code: refusal.retryable for refusal in Refusal.__subclasses__()}
    assert {code: answer == "yes" for code, answer in rows} == retryable


def test_every_built_in_type_is_explained() -> None:
    text = ENTRY.read_text(encoding="utf-8")
    table = text.partition("## Types of transactions\n")[2].partition("\n## ")[0]

    assert set(re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)) == BUILT_IN_TYPES


def test_the_split_is_the_one_that_money_makes() -> None:
    (split,) = (
        orjson.loads(example.variables)["input"]
        for example in examples()
        if "marketplace_order" in example.variables
    )
    (paid, commission, *sellers) = (int(leg["amount"]["minorUnits"]) for leg in split["legs"])

    parts = Money(paid - commission, "BRL").allocate([1] * len(sellers))

    assert [part.minor_units for part in parts] == sellers
