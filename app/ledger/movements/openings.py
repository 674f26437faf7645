"""Opening balances: what an account already had when it came to this ledger."""

from uuid import UUID

from app.ledger.errors import Refusal, SameAccount
from app.ledger.idempotency import fingerprint
from app.ledger.model import Account, Json
from app.ledger.money import Money
from app.ledger.requests import PostingRequest, RequestedLeg
from app.ledger.rules import AMOUNT_PATH, refuse_amount, refuse_key, refuse_metadata


def opening(  # noqa: PLR0917 - how many is judged in review, as it is for PLR0913
    account: Account,
    amount: Money,
    equity_account_id: UUID,
    key: str,
    caller: str,
    transaction_id: UUID,
    metadata: Json | None,
) -> PostingRequest | Refusal:
    """Raise the account by a positive amount, seen from its normal side, against the equity account."""
    refusal = refuse_key(key) or refuse_amount(amount) or refuse_metadata(metadata)
    if refusal is not None:
        return refusal
    if account.id == equity_account_id:
        return SameAccount(("equityAccountId",))
    raised = amount if account.credit_normal else -amount
    return PostingRequest(
        id=transaction_id,
        type="opening",
        caller=caller,
        key=key,
        fingerprint=fingerprint(
            "openAccountBalance",
            {
                "accountId": account.id,
                "equityAccountId": equity_account_id,
                "amount": amount,
                "metadata": metadata,
            },
        ),
        legs=(
            RequestedLeg(
                account_id=equity_account_id,
                amount=-raised,
                account_path=("equityAccountId",),
                amount_path=AMOUNT_PATH,
            ),
            RequestedLeg(
                account_id=account.id,
                amount=raised,
                account_path=("accountId",),
                amount_path=AMOUNT_PATH,
            ),
        ),
        metadata=metadata,
    )
