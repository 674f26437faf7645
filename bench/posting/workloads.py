"""What a client does again and again: one unit of work is one movement, or a few that belong together."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias
from uuid import UUID

from uuid_utils.compat import uuid7

from app.ledger.answers import HoldPosted
from app.ledger.model import Caller, Direction, Scope
from app.ledger.money import Money
from app.ledger.movements.holds import CaptureHoldCommand, PlaceHoldCommand
from app.ledger.movements.postings import LegCommand, PostTransactionCommand
from app.ledger.movements.transfers import TransferCommand
from app.ledger.posting.changes import Posted
from app.ledger.service import Ledger

CURRENCY: Final = "BRL"
CALLER: Final = Caller("bench", frozenset({Scope.WALLET, Scope.OPERATE}))
"""Owns all wallets, and operates the ledger."""

SPLIT_CREDITS: Final = 4

Work: TypeAlias = Callable[[], Awaitable[int]]
"""Does one unit of work and returns how many movements that were."""


class Workload(StrEnum):
    """Which work is done."""

    TRANSFERS = "transfers"
    """From one random wallet to another."""
    CREDITS = "credits"
    """From a random wallet to one account that takes them all."""
    SPLITS = "splits"
    """General postings that debit one random wallet and credit four."""
    HOLDS = "holds"
    """Money of a random wallet is set aside, and then paid to another: two movements."""


def wallet_id(number: int) -> UUID:
    """Make the id of a wallet from its number, from 1 up, as the SQL function of the same name does."""
    return UUID(f"00000000-0000-7000-8000-{number:012x}")


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody who moves money between wallets of the caller's."""

    ledger: Ledger
    wallets: Sequence[UUID]

    async def transfer(self) -> int:
        """Move money between two wallets."""
        sender, receiver = random.sample(self.wallets, 2)
        return await self._pay(sender, receiver)

    async def credit(self, receiver: UUID) -> int:
        """Move money from a wallet to the account that takes every credit, which may itself be a wallet."""
        sender, other = random.sample(self.wallets, 2)
        return await self._pay(other if sender == receiver else sender, receiver)

    async def split(self) -> int:
        """Debit one wallet and credit several in one transaction."""
        payer, *payees = random.sample(self.wallets, 1 + SPLIT_CREDITS)
        share = _money(100)
        whole = _money(share.minor_units * SPLIT_CREDITS)
        legs = (
            LegCommand(payer, Direction.DEBIT, whole),
            *(LegCommand(payee, Direction.CREDIT, share) for payee in payees),
        )
        command = PostTransactionCommand(str(uuid7()), "split", legs)
        answer = await self.ledger.post_transaction(CALLER, command)
        assert isinstance(answer, Posted), answer
        return 1

    async def hold(self) -> int:
        """Set money of a wallet aside, then pay all of it to another."""
        payer, payee = random.sample(self.wallets, 2)
        placed = await self.ledger.place_hold(
            CALLER, PlaceHoldCommand(str(uuid7()), payer, _money(100))
        )
        assert isinstance(placed, HoldPosted), placed
        captured = await self.ledger.capture_hold(
            CALLER, CaptureHoldCommand(str(uuid7()), placed.hold.id, payee)
        )
        assert isinstance(captured, HoldPosted), captured
        return 2

    async def _pay(self, sender: UUID, receiver: UUID) -> int:
        command = TransferCommand(str(uuid7()), sender, receiver, _money(100))
        answer = await self.ledger.transfer(CALLER, command)
        assert isinstance(answer, Posted), answer
        return 1


def work_of(client: Client, workload: Workload, receiver: UUID | None) -> Work:
    """Return the client's work; `receiver` takes the credits and is needed for them alone."""
    match workload:
        case Workload.TRANSFERS:
            return client.transfer
        case Workload.SPLITS:
            return client.split
        case Workload.HOLDS:
            return client.hold
        case Workload.CREDITS:
            if receiver is None:
                raise ValueError("credits need an account that takes them")
            return lambda: client.credit(receiver)


def _money(minor_units: int) -> Money:
    return Money(minor_units, CURRENCY)
