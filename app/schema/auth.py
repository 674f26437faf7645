"""Who asks: reading a bearer token from where a request may carry it."""

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from app.schema.errors import unauthenticated
from app.tokens import Claims, ExpiredTokenError, InvalidTokenError, Tokens

TOKEN_LIMIT: Final = 8_192
"""Longest token that is looked at, in characters."""

TOKENS_KEPT: Final = 10_000
"""Tokens whose claims are remembered, the most recently used ones: checking a signature costs as much as booking."""

HEADER: Final = "authorization"

_EXPIRED: Final = "The bearer token has expired; a new one is needed."


def authenticate(tokens: Tokens, authorization: str) -> Claims:
    """Verify the value of an Authorization header; raises UNAUTHENTICATED, saying of what is wrong only expiry."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or len(token) > TOKEN_LIMIT:
        raise unauthenticated()
    try:
        claims = _verified(tokens, token.strip())
    except ExpiredTokenError:
        raise unauthenticated(_EXPIRED) from None
    except InvalidTokenError:
        raise unauthenticated() from None
    # A remembered token may have expired since it was verified.
    if claims.expires_at.timestamp() <= time.time():
        raise unauthenticated(_EXPIRED)
    return claims


def authorization_of(headers: Mapping[str, str], payload: Mapping[str, Any]) -> str | None:
    """Find the authorization of a WebSocket: in the payload of `connection_init`, or in the handshake's header.

    A browser can't set a header of a WebSocket, so the payload comes first.
    """
    for name, value in payload.items():
        if name.lower() == HEADER and isinstance(value, str):
            return value
    return headers.get(HEADER)


@lru_cache(TOKENS_KEPT)
def _verified(tokens: Tokens, token: str) -> Claims:
    """Verify a token; what raises isn't remembered, so that forged ones push nothing out."""
    return tokens.verify(token)
