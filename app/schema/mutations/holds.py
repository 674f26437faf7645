"""Money that is set aside: holds, and withdrawals on their way to a bank."""

import strawberry

from app.ledger.answers import HoldAnswer
from app.schema.context import Info
from app.schema.described import object_type
from app.schema.mutations.arguments import Given
from app.schema.mutations.notes import note_hold
from app.schema.types.inputs.holds import (
    CaptureHoldInput,
    PlaceHoldInput,
    SettleWithdrawalInput,
    VoidHoldInput,
    WithdrawInput,
)
from app.schema.types.payloads import HoldPayload, WithdrawPayload


@object_type
class HoldMutations:
    """What sets money aside, and what becomes of it then."""

    @strawberry.mutation(description="WALLET, from an account of one's own.")
    async def withdraw(self, info: Info, input: Given[WithdrawInput]) -> WithdrawPayload:
        """Send money to a bank."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return _withdrawal(info, await ledger.withdraw(caller, input.to_command()))

    @strawberry.mutation(description="OPERATE.")
    async def settle_withdrawal(
        self, info: Info, input: Given[SettleWithdrawalInput]
    ) -> WithdrawPayload:
        """Book what the bank says."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return _withdrawal(info, await ledger.settle_withdrawal(caller, input.to_command()))

    @strawberry.mutation(description="WALLET, on an account of one's own; OPERATE, on any.")
    async def place_hold(self, info: Info, input: Given[PlaceHoldInput]) -> HoldPayload:
        """Set money aside."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return _hold(info, await ledger.place_hold(caller, input.to_command()))

    @strawberry.mutation(description="OPERATE.")
    async def capture_hold(self, info: Info, input: Given[CaptureHoldInput]) -> HoldPayload:
        """Pay from what is set aside."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return _hold(info, await ledger.capture_hold(caller, input.to_command()))

    @strawberry.mutation(description="OPERATE.")
    async def void_hold(self, info: Info, input: Given[VoidHoldInput]) -> HoldPayload:
        """Give back what is set aside."""
        caller, ledger = info.context.caller, info.context.services.ledger
        return _hold(info, await ledger.void_hold(caller, input.to_command()))


def _hold(info: Info, answer: HoldAnswer) -> HoldPayload:
    note_hold(info, answer)
    return HoldPayload.of(answer)


def _withdrawal(info: Info, answer: HoldAnswer) -> WithdrawPayload:
    note_hold(info, answer)
    return WithdrawPayload.of(answer)
