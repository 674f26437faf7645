"""The examples of docs/api.md, executed in their order against an empty ledger."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from app.ledger.model import Scope
from app.schema import build_schema
from tests.schema.server import ApiServer, JsonObject

DOCUMENT = Path(__file__).parents[2] / "docs" / "api.md"

_BLOCK = re.compile(r"^```(graphql|json)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"<[a-z' ]+>")


@dataclass(frozen=True, slots=True)
class Example:
    """One operation with the answer that the document promises."""

    subject: str
    scopes: tuple[Scope, ...]
    query: str
    variables: str
    answer: JsonObject


def examples() -> list[Example]:
    """Read the document: a block of GraphQL that names who asks, maybe one of variables, and one of the answer."""
    blocks = [match.groups() for match in _BLOCK.finditer(DOCUMENT.read_text(encoding="utf-8"))]
    found: list[Example] = []
    while blocks:
        language, who, query = blocks.pop(0)
        assert language == "graphql"
        variables = "{}"
        if blocks[0][1].strip() == "variables":
            variables = blocks.pop(0)[2]
        language, info, answer = blocks.pop(0)
        assert (language, info) == ("json", "")
        subject, *scopes = who.split()
        granted = tuple(Scope(scope) for scope in scopes)
        found.append(Example(subject, granted, query, variables, orjson.loads(answer)))
    return found


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


async def test_every_example_is_true(server: ApiServer) -> None:
    known: dict[str, str] = {}
    for example in examples():
        token = server.token(example.subject, *example.scopes)
        query, variables = filled(example.query, known), filled(example.variables, known)
        if query.startswith("subscription"):
            async with server.socket(token) as socket:
                await socket.subscribe(query, **orjson.loads(variables))
                answer = {"data": await socket.next()}
        else:
            answer = (await server.post(query, orjson.loads(variables), token=token)).json()
        compare(example.answer, answer, known)


def test_every_operation_has_an_example() -> None:
    text = " ".join(example.query for example in examples())
    core = build_schema().core
    for root in (core.query_type, core.mutation_type, core.subscription_type):
        assert root is not None
        for name in root.fields:
            assert re.search(rf"\b{name}\b", text), name
