"""Notes of what the fields of a request have done, for `extensions.carriedOut`."""

from collections.abc import Iterable

from app.ledger.answers import HoldAnswer, HoldPosted, PostingAnswer
from app.ledger.model import HoldPurpose
from app.ledger.posting.decision import Posted
from app.schema.context import Info
from app.schema.ids import encode_hold_id, encode_transaction_id, encode_withdrawal_id
from app.schema.types.payloads import PostingPayload


def note(info: Info, **done: object) -> None:
    """Note what the field has done."""
    info.context.carried_out.append({"path": info.path.as_list(), **done})


def note_postings(info: Info, answers: Iterable[PostingAnswer]) -> None:
    """Note the transactions that were booked, now or by earlier requests."""
    for answer in answers:
        if isinstance(answer, Posted):
            note(
                info,
                transactionId=encode_transaction_id(answer.transaction.id),
                replayed=answer.replayed,
            )


def posting_payload(info: Info, answer: PostingAnswer) -> PostingPayload:
    """Note a posting and answer it."""
    note_postings(info, [answer])
    return PostingPayload.of(answer)


def note_hold(info: Info, answer: HoldAnswer) -> None:
    """Note what became of a hold, or of a withdrawal."""
    if not isinstance(answer, HoldPosted):
        return
    hold = answer.hold
    named = (
        {"holdId": encode_hold_id(hold.id)}
        if hold.purpose is HoldPurpose.HOLD
        else {"withdrawalId": encode_withdrawal_id(hold.id)}
    )
    transaction_id = encode_transaction_id(answer.transaction.id)
    note(info, **named, transactionId=transaction_id, replayed=answer.replayed)
