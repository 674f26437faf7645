"""Ids and cursors: one spelling each, bound to what they name."""

import base64
from functools import partial
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.model import HoldPurpose
from app.schema.cursors import (
    account_cursor,
    entry_cursor,
    hold_cursor,
    read_account_cursor,
    read_entry_cursor,
    read_hold_cursor,
    read_transaction_cursor,
    transaction_cursor,
)
from app.schema.errors import ApiError
from app.schema.ids import (
    AccountId,
    EntryId,
    HoldId,
    TransactionId,
    WithdrawalId,
    decode_account_id,
    decode_hold_id,
    decode_id,
    decode_transaction_id,
    decode_withdrawal_id,
    encode_account_id,
    encode_entry_id,
    encode_hold_id,
    encode_transaction_id,
    encode_withdrawal_id,
)
from tests.support.ledger import new_id

SEQUENCES = st.integers(min_value=1, max_value=2**63 - 1)
ACCOUNT, OTHER_ACCOUNT = new_id(), new_id()


def spelt(plain: str) -> str:
    return base64.urlsafe_b64encode(plain.encode()).rstrip(b"=").decode()


@given(account=st.uuids(), sequence=SEQUENCES)
def test_ids_name_what_they_were_made_of(account: UUID, sequence: int) -> None:
    assert decode_id(encode_account_id(account)) == AccountId(account)
    assert decode_id(encode_transaction_id(account)) == TransactionId(account)
    assert decode_id(encode_entry_id(account, sequence)) == EntryId(account, sequence)
    assert decode_id(encode_hold_id(account)) == HoldId(account)
    assert decode_id(encode_withdrawal_id(account)) == WithdrawalId(account)


@given(text=st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=120))
def test_whatever_is_decoded_is_spelt_in_one_way(text: str) -> None:
    match decode_id(text):
        case AccountId(key):
            assert encode_account_id(key) == text
        case TransactionId(key):
            assert encode_transaction_id(key) == text
        case EntryId(key, sequence):
            assert encode_entry_id(key, sequence) == text
        case HoldId(key):
            assert encode_hold_id(key) == text
        case WithdrawalId(key):
            assert encode_withdrawal_id(key) == text
        case None:
            pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "1; select 1",
        str(ACCOUNT),
        encode_account_id(ACCOUNT) + "=",
        encode_account_id(ACCOUNT)[:-1],
        encode_account_id(ACCOUNT) + "A",
        spelt(f"account:{ACCOUNT}"),
        spelt(f"Account:{str(ACCOUNT).upper()}"),
        spelt(f"Account:{{{ACCOUNT}}}"),
        spelt(f"Account:{ACCOUNT.hex}"),
        spelt(f"Account:{ACCOUNT}:1"),
        spelt(f"Account: {ACCOUNT}"),
        spelt(f"Entry:{ACCOUNT}"),
        spelt(f"Entry:{ACCOUNT}:0"),
        spelt(f"Entry:{ACCOUNT}:01"),
        spelt(f"Entry:{ACCOUNT}:-1"),
        spelt(f"Entry:{ACCOUNT}:1:1"),
        spelt(f"Entry:{ACCOUNT}:{2**63}"),
        spelt(f"Hold:{ACCOUNT}:1"),
        spelt(f"Withdrawal:{str(ACCOUNT).upper()}"),
        spelt(f"Payment:{ACCOUNT}"),
        spelt("Account:é"),
    ],
    ids=repr,
)
def test_g09_other_spellings_name_nothing(text: str) -> None:
    assert decode_id(text) is None


def test_g09_an_id_of_another_type_names_nothing() -> None:
    assert decode_account_id(encode_transaction_id(ACCOUNT)) is None
    assert decode_account_id(encode_entry_id(ACCOUNT, 1)) is None
    assert decode_transaction_id(encode_account_id(ACCOUNT)) is None
    assert decode_hold_id(encode_withdrawal_id(ACCOUNT)) is None
    assert decode_withdrawal_id(encode_hold_id(ACCOUNT)) is None


@pytest.mark.parametrize("text", ["nul\0", "\ud800", "é", "line\n", "x" * 257], ids=repr)
def test_g07_what_can_t_be_an_id_is_a_bad_request(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        decode_id(text)
    assert caught.value.code == "BAD_REQUEST"


@given(sequence=SEQUENCES)
def test_a_cursor_is_a_place_in_its_own_list_only(sequence: int) -> None:
    cursor = entry_cursor(ACCOUNT, sequence)
    assert read_entry_cursor(ACCOUNT, cursor) == sequence
    with pytest.raises(ApiError):
        read_entry_cursor(OTHER_ACCOUNT, cursor)
    with pytest.raises(ApiError):
        read_account_cursor("alice", cursor)


@given(sequence=SEQUENCES, place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_g09_a_flipped_bit_is_noticed(sequence: int, place: int, bit: int) -> None:
    raw = bytearray(base64.urlsafe_b64decode(entry_cursor(ACCOUNT, sequence) + "="))
    raw[place % len(raw)] ^= 1 << bit
    forged = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    with pytest.raises(ApiError) as caught:
        read_entry_cursor(ACCOUNT, forged)
    assert caught.value.code == "INVALID_CURSOR"


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "=",
        "\0",
        "é",
        "\ud800",
        entry_cursor(ACCOUNT, 1)[:-1],
        entry_cursor(ACCOUNT, 1) + "=",
        entry_cursor(ACCOUNT, 1) + "\n",
        entry_cursor(OTHER_ACCOUNT, 1),
        spelt("1; select 1"),
        spelt("-1"),
        pytest.param("x" * 1_000_000, id="a million characters"),
    ],
    ids=repr,
)
def test_g09_what_isn_t_a_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ApiError) as caught:
        read_entry_cursor(ACCOUNT, cursor)
    assert caught.value.code == "INVALID_CURSOR"


def test_a_cursor_of_somebody_elses_accounts_is_refused() -> None:
    cursor = account_cursor("alice", ACCOUNT)
    assert read_account_cursor("alice", cursor) == ACCOUNT
    with pytest.raises(ApiError):
        read_account_cursor("bob", cursor)


@given(owner=st.text(max_size=40))
def test_a_cursor_of_one_list_is_none_of_another(owner: str) -> None:
    readers = {
        account_cursor(owner, ACCOUNT): partial(read_account_cursor, owner),
        account_cursor(None, ACCOUNT): partial(read_account_cursor, None),
        **{
            hold_cursor(purpose, account, ACCOUNT): partial(read_hold_cursor, purpose, account)
            for purpose in HoldPurpose
            for account in (None, ACCOUNT, OTHER_ACCOUNT)
        },
        transaction_cursor(ACCOUNT): read_transaction_cursor,
    }
    assert len(readers) == 9
    for cursor, own in readers.items():
        assert own(cursor) == ACCOUNT
        for other in readers.values():
            if other is not own:
                with pytest.raises(ApiError):
                    other(cursor)
