"""Accounts and what they have."""

from typing import Annotated, Self

import strawberry

from app.ledger import model
from app.schema.context import Info
from app.schema.described import object_type
from app.schema.ids import encode_account_id
from app.schema.scalars import CurrencyCode, Instant, JsonValue
from app.schema.types.balances import Balance
from app.schema.types.enums import AccountKind, AccountStatus, BalanceTracking, Direction
from app.schema.types.money import Money
from app.schema.types.nodes import Node


@object_type
class AccountFields(Node):
    """What an account says of itself, its balance included; `objects` adds where it leads to."""

    facts: strawberry.Private[model.Account]
    code: str | None = strawberry.field(
        description=(
            'Unique name for people and partners, such as "merchant:123:available" or '
            '"system:bank_clearing:BRL".'
        )
    )
    owner: str | None = strawberry.field(
        description="Subject (the token's `sub`) that owns the account; null for the platform's own accounts."
    )
    kind: AccountKind = strawberry.field(description="Fixes the side on which the account grows.")
    normal_balance: Direction = strawberry.field(
        description="The side on which this kind of account grows."
    )
    currency: CurrencyCode = strawberry.field(description="The one currency of the account.")
    status: AccountStatus = strawberry.field(description="Whether money may move.")
    allow_negative: bool = strawberry.field(description="Whether the balance may fall below zero.")
    tracking: BalanceTracking = strawberry.field(description="How the account answers contention.")
    metadata: JsonValue | None = strawberry.field(description="What its opener attached.")
    created_at: Instant = strawberry.field(description="When it was opened.")

    @classmethod
    def of(cls, account: model.Account) -> Self:
        """Show an account to who may read it."""
        return cls(
            id=strawberry.ID(encode_account_id(account.id)),
            facts=account,
            code=account.code,
            owner=account.owner,
            kind=account.kind,
            normal_balance=account.normal_balance,
            currency=CurrencyCode(account.currency),
            status=account.status,
            allow_negative=account.allow_negative,
            tracking=account.tracking,
            metadata=None if account.metadata is None else JsonValue(account.metadata),
            created_at=Instant(account.created_at),
        )

    @strawberry.field(description="Current, strongly consistent.")
    async def balance(self, info: Info) -> Balance:
        """Read what the account has now."""
        account = self._for_reader(info)
        return Balance.of(account, await info.context.reads.balances.load(account.id))

    @strawberry.field(
        description="The posted balance as it stood at that instant (by posting time), reproducible for ever."
    )
    async def balance_at(
        self,
        info: Info,
        at: Annotated[Instant, strawberry.argument(description="Postings at it are included.")],
    ) -> Money:
        """Read what the account had then."""
        account = self._for_reader(info)
        posted = await info.context.reads.balances_at.load((account.id, at))
        return Money.of_account(account, posted)

    def _for_reader(self, info: Info) -> model.Account:
        """Hand out the account for reading what it has; raises MissingScopeError where the caller may not.

        Who may only operate is shown which account was opened, or bears a hold, and nothing of its money.
        """
        if not info.context.caller.may_read(self.facts):
            raise model.MissingScopeError((model.Scope.AUDIT,))
        return self.facts
