"""The books, checked from outside: what the API says of each wallet must add up, whatever happened on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.demo.api import Api, Json, ServerTroubleError
from app.demo.documents import HISTORY


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a wallet's history; amounts in minor units."""

    sequence: int
    amount: int
    balance_after: int
    transaction_id: str

    @classmethod
    def of(cls, entry: Json) -> "Line":
        """Read an entry as the API writes it."""
        return cls(
            sequence=int(entry["sequence"]),
            amount=int(entry["amount"]["minorUnits"]),
            balance_after=int(entry["balanceAfter"]["minorUnits"]),
            transaction_id=entry["transaction"]["id"],
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """A wallet's whole history and the balance that its account shows."""

    lines: tuple[Line, ...]
    balance: int
    balance_shown: str
    """The balance as the API writes it for people."""

    @property
    def numbered(self) -> bool:
        """Whether the entries are numbered 1, 2, 3 and so on."""
        return [line.sequence for line in self.lines] == list(range(1, len(self.lines) + 1))

    @property
    def chained(self) -> bool:
        """Whether each entry's balance is the one before it plus its amount."""
        balance = 0
        for line in self.lines:
            balance += line.amount
            if line.balance_after != balance:
                return False
        return True

    @property
    def adds_up(self) -> bool:
        """Whether the entries sum to the account's balance."""
        return sum(line.amount for line in self.lines) == self.balance


@dataclass(frozen=True, slots=True)
class Proof:
    """Something that must be true, whether it is, and the figures that show it."""

    claim: str
    holds: bool
    figures: str


def in_reais(minor_units: int) -> str:
    """Write centavos for people; the story knows no other currency."""
    return f"{Decimal(minor_units).scaleb(-2):.2f} BRL"


async def read_statement(api: Api, token: str, account_id: str) -> Statement:
    """Page through an account's history from its first entry to its last."""
    lines: list[Line] = []
    after: str | None = None
    while True:
        account = await api.execute(token, HISTORY, {"id": account_id, "after": after})
        if not account:
            raise ServerTroubleError("The server no longer shows an account that it has opened.")
        page = account["entries"]
        lines += [Line.of(entry) for entry in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            available = account["balance"]["available"]
            shown = f"{available['decimal']} {available['currency']}"
            return Statement(tuple(lines), int(available["minorUnits"]), shown)


def prove(
    statements: Sequence[Statement],
    *,
    deposited: int,
    acknowledged: Sequence[str],
    live: Sequence[Line],
    watched: Statement,
) -> Sequence[Proof]:
    """Check the histories of all wallets.

    `acknowledged` are the transactions that the server has said it booked, once for each intention; `live` is what the
    subscription on the `watched` wallet has delivered.
    """
    entries = sum(len(statement.lines) for statement in statements)
    in_wallets = sum(statement.balance for statement in statements)
    booked = {line.transaction_id for statement in statements for line in statement.lines}
    return (
        Proof(
            "Every wallet's entries are numbered without a gap",
            all(statement.numbered for statement in statements),
            f"{entries} entries in {len(statements)} wallets",
        ),
        Proof(
            "Every balance is the one before it plus the entry's amount",
            all(statement.chained for statement in statements),
            f"{entries} steps",
        ),
        Proof(
            "Every wallet's entries sum to its balance",
            all(statement.adds_up for statement in statements),
            ", ".join(statement.balance_shown for statement in statements),
        ),
        Proof(
            "The wallets hold what was deposited, to the cent",
            in_wallets == deposited,
            f"{in_reais(in_wallets)} in wallets, {in_reais(deposited)} deposited",
        ),
        Proof(
            "Every acknowledged request was booked once, and nothing else was",
            len(set(acknowledged)) == len(acknowledged) and set(acknowledged) == booked,
            f"{len(acknowledged)} acknowledged, {len(booked)} booked",
        ),
        Proof(
            "The subscriber saw every entry once and in order",
            tuple(live) == watched.lines,
            f"{len(live)} seen, {len(watched.lines)} in the history",
        ),
    )
