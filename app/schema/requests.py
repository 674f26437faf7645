"""What both doors receive: one operation as JSON, read strictly."""

from dataclasses import dataclass
from typing import Any, cast

import orjson

from app.schema.errors import bad_request
from app.schema.limits import QUERY_LIMIT


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """One operation that a client asks for; nothing in it has been parsed as GraphQL yet."""

    query: str
    variables: dict[str, Any]
    operation_name: str | None

    @classmethod
    def of(cls, parameters: object) -> "GraphQLRequest":
        """Read the parameters of a request; raises BAD_REQUEST where one is missing or of a wrong type."""
        if not isinstance(parameters, dict):
            raise bad_request("The request must be a JSON object.")
        named = cast("dict[str, Any]", parameters)
        query, operation_name = named.get("query"), named.get("operationName")
        if not isinstance(query, str) or not query:
            raise bad_request("`query` must be a string with a GraphQL document.")
        if len(query) > QUERY_LIMIT:
            raise bad_request(
                f"`query` may have {QUERY_LIMIT} characters; data belongs into `variables`."
            )
        if not isinstance(operation_name, str | None):
            raise bad_request("`operationName` must be a string or null.")
        return cls(query, _object(named, "variables"), operation_name)


def decode_json(text: str | bytes) -> object:
    """Read JSON as RFC 8259 has it: UTF-8, no NaN, no lone surrogates, no abyss of brackets. Raises BAD_REQUEST."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise bad_request("The request is not valid JSON.") from None


def encode_json(value: object) -> bytes:
    """Write JSON; a number that JSON doesn't have can't get into it."""
    return orjson.dumps(value)


def _object(parameters: dict[str, Any], name: str) -> dict[str, Any]:
    # `extensions` is allowed by the protocol too, but nothing here asks for it.
    if not isinstance(parameters.get("extensions"), dict | None):
        raise bad_request("`extensions` must be an object or null.")
    value = parameters.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"`{name}` must be an object or null.")
    return cast("dict[str, Any]", value)
