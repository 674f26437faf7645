"""Bearer tokens: JSON Web Tokens that say who a caller is (`sub`), what the caller may do (`scope`) and until when (`exp`).

Signed with HMAC-SHA-256 (HS256); the algorithm is pinned, so that a token can't choose how it is checked.
"""

import os
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import jwt

from app.ledger.model import Caller, Scope

SUBJECT_LIMIT: Final = 255

KEY_FILE: Final = "token-secret"
"""Where a laptop's secret lies below its data directory."""

_ALGORITHM: Final = "HS256"
_SECRET_BYTES: Final = 32


class InvalidTokenError(Exception):
    """The token is malformed, not ours, expired or incomplete; says no more, so that a forger learns nothing."""


class ExpiredTokenError(InvalidTokenError):
    """The token was valid and has expired: its bearer needs a new one."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a valid token says."""

    caller: Caller
    expires_at: datetime
    """UTC."""


class Tokens:
    """Issues and verifies tokens with one secret."""

    def __init__(
        self, secret: str, *, issuer: str | None = None, audience: str | None = None
    ) -> None:
        """Take the secret and, where tokens must name them, the issuer and the audience."""
        self._secret = secret
        self._issuer = issuer
        self._audience = audience

    def issue(
        self, subject: str, scopes: frozenset[Scope], *, now: datetime, lifetime: timedelta
    ) -> str:
        """Sign a token for the subject that expires after the lifetime."""
        claims: dict[str, object] = {
            "sub": subject,
            "scope": " ".join(sorted(scopes)),
            "iat": now,
            "exp": now + lifetime,
        }
        if self._issuer is not None:
            claims["iss"] = self._issuer
        if self._audience is not None:
            claims["aud"] = self._audience
        return jwt.encode(claims, self._secret, algorithm=_ALGORITHM)

    def verify(self, token: str) -> Claims:
        """Check the signature, the expiry and the claims; raises InvalidTokenError, of which ExpiredTokenError is a kind.

        Scopes that Saldo doesn't know are left out: an identity provider puts those of other services there too.
        """
        try:
            claims = jwt.decode(
                token,
                self._secret,
                algorithms=[_ALGORITHM],
                issuer=self._issuer,
                audience=self._audience,
                options={
                    "require": ["sub", "scope", "exp"],
                    "verify_aud": self._audience is not None,
                },
            )
            expires_at = datetime.fromtimestamp(claims["exp"], UTC)
        except jwt.ExpiredSignatureError:
            raise ExpiredTokenError from None
        except (jwt.PyJWTError, ValueError, OverflowError, OSError, TypeError):
            raise InvalidTokenError from None
        subject, scope = claims["sub"], claims["scope"]
        if not (
            isinstance(subject, str) and 0 < len(subject) <= SUBJECT_LIMIT and subject.isprintable()
        ):
            raise InvalidTokenError
        if not isinstance(scope, str):
            raise InvalidTokenError
        known = frozenset(Scope(word) for word in scope.split() if word in Scope.__members__)
        return Claims(Caller(subject, known), expires_at)


def local_secret(data_dir: Path) -> str:
    """Read the secret of a laptop from the data directory, making it (readable by its owner alone) on first use."""
    file = data_dir / KEY_FILE
    data_dir.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        with tempfile.NamedTemporaryFile("w", dir=data_dir, encoding="ascii") as draft:
            draft.write(secrets.token_urlsafe(_SECRET_BYTES))
            draft.flush()
            # A link appears whole or not at all: of two processes that start at once, the second finds the first's.
            with suppress(FileExistsError):
                os.link(draft.name, file)
    return file.read_text(encoding="ascii")
