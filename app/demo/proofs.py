"""The books, checked from outside: what the API says of each wallet must add up, whatever happened on the way."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.demo.amounts import for_people, reais
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
    """A wallet's whole history and the balance that its account shows; amounts in minor units."""

    lines: tuple[Line, ...]
    balance: int
    """What is available."""
    balance_shown: str
    """The balance as the API writes it for people."""
    held: int
    """What is set aside."""

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
            available, held = account["balance"]["available"], account["balance"]["held"]
            return Statement(
                tuple(lines),
                balance=int(available["minorUnits"]),
                balance_shown=f"{available['decimal']} {available['currency']}",
                held=int(held["minorUnits"]),
            )


def prove(
    statements: Sequence[Statement],
    *,
    deposited: int,
    acknowledged: Sequence[str],
    split_id: str,
    live: Sequence[Sequence[Line]],
) -> Sequence[Proof]:
    """Check the histories of all wallets.

    `acknowledged` are the transactions that the server has said it booked, once for each intention; `split_id` is the one
    that divided a payment among many; `live` is what the subscriptions on the wallets have delivered, in the order of the
    statements.
    """
    lines = [line for statement in statements for line in statement.lines]
    booked = {line.transaction_id for line in lines}
    parts = [line.amount for line in lines if line.transaction_id == split_id]
    in_wallets = sum(statement.balance for statement in statements)
    held = sum(statement.held for statement in statements)
    return (
        Proof(
            "Every wallet's entries are numbered without a gap",
            all(statement.numbered for statement in statements),
            f"{len(lines)} entries in {len(statements)} wallets",
        ),
        Proof(
            "Every balance is the one before it plus the entry's amount",
            all(statement.chained for statement in statements),
            f"{len(lines)} steps",
        ),
        Proof(
            "Every wallet's entries sum to its balance",
            all(statement.adds_up for statement in statements),
            ", ".join(statement.balance_shown for statement in statements),
        ),
        Proof(
            "The wallets hold what was deposited, to the cent",
            in_wallets == deposited,
            f"{_shown(in_wallets)} in wallets, {_shown(deposited)} deposited",
        ),
        Proof(
            "What was set aside was spent or given back",
            held == 0,
            f"{_shown(held)} still set aside",
        ),
        Proof(
            "The split payment arrived whole",
            len(parts) > 0 and sum(parts) == 0,
            ", ".join(_shown(part) for part in parts),
        ),
        Proof(
            "Every acknowledged request was booked once, and nothing else was",
            len(set(acknowledged)) == len(acknowledged) and set(acknowledged) == booked,
            f"{len(acknowledged)} acknowledged, {len(booked)} booked",
        ),
        Proof(
            "Subscribers saw every entry of every wallet once and in order",
            [tuple(seen) for seen in live] == [statement.lines for statement in statements],
            f"{sum(map(len, live))} seen, {len(lines)} in the histories",
        ),
    )


def _shown(minor_units: int) -> str:
    return for_people(reais(minor_units))
