"""Lists of what is set aside: the holds or the withdrawals of an account, or everybody's."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias
from uuid import UUID

import strawberry

from app.ledger.model import Account, Hold, HoldPurpose
from app.ledger.pages import HoldFilter, Page, PageRequest
from app.schema.context import Info
from app.schema.cursors import hold_cursor, read_hold_cursor
from app.schema.described import given
from app.schema.types.enums import HoldStatus, WithdrawalStatus

HoldStatusWanted: TypeAlias = Annotated[
    HoldStatus | None, strawberry.argument(description="Only these; all unless given.")
]
WithdrawalStatusWanted: TypeAlias = Annotated[
    WithdrawalStatus | None, strawberry.argument(description="Only these; all unless given.")
]


@dataclass(frozen=True, slots=True)
class HoldList:
    """The holds of one purpose, newest first: those of an account that the caller may read, or everybody's."""

    purpose: HoldPurpose
    account: Account | None = None

    async def page(
        self, info: Info, status: HoldStatus | WithdrawalStatus | None, request: PageRequest[UUID]
    ) -> Page[Hold]:
        """Read a page, as an argument wants it; raises MissingScopeError where everybody's are not for the caller."""
        kept = given(status)
        wanted = HoldFilter(
            self.purpose, kept.value if isinstance(kept, WithdrawalStatus) else kept
        )
        account, caller = self.account, info.context.caller
        return await info.context.reads.once(
            lambda reader: (
                reader.holds_page(caller, wanted, request)
                if account is None
                else reader.holds_of_account(account, wanted, request)
            )
        )

    def cursor(self, hold: Hold) -> str:
        """Write the cursor of a hold of this list."""
        return hold_cursor(self.purpose, self._account_id, hold.id)

    def read_cursor(self, cursor: str) -> UUID:
        """Read the id of a hold; raises INVALID_CURSOR unless the cursor is one of this list."""
        return read_hold_cursor(self.purpose, self._account_id, cursor)

    @property
    def _account_id(self) -> UUID | None:
        return None if self.account is None else self.account.id
