"""Content negotiation: which media types are spoken, and which one the client likes best."""

from typing import Final

JSON: Final = "application/json"
GRAPHQL_RESPONSE: Final = "application/graphql-response+json"

_OFFERED: Final = {
    GRAPHQL_RESPONSE: GRAPHQL_RESPONSE,
    JSON: JSON,
    "application/*": JSON,
    "*/*": JSON,
}


def negotiate(accept: str | None) -> str | None:
    """Choose the media type of the answer; None where the client accepts none that is spoken."""
    if not accept:
        return JSON
    best, best_weight = None, 0.0
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = _weight(parameters)
        if name in _OFFERED and weight > best_weight:
            best, best_weight = _OFFERED[name], weight
    return best


def is_json(content_type: str | None) -> bool:
    """Tell whether a body is JSON in UTF-8; a page of another site can't send that without being asked first."""
    name, *parameters = (piece.strip().lower() for piece in (content_type or "").split(";"))
    charsets = [
        value.strip('"')
        for key, _, value in (parameter.partition("=") for parameter in parameters)
        if key == "charset"
    ]
    return name == JSON and all(charset in {"utf-8", "utf8"} for charset in charsets)


def wants_page(accept: str | None) -> bool:
    """Tell whether a person at a browser asks."""
    return "text/html" in (accept or "").lower()


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
