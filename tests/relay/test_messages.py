"""What is announced fits into a notification and says all that it must (P03)."""

from itertools import accumulate
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.relay.messages import (
    ACCOUNTS_MAX,
    RESYNC,
    UNTOLD,
    PositionedEvent,
    Resync,
    Unreadable,
    WakeUp,
    decode,
    encode,
    merge_sequences,
    pack,
)

LARGEST = 2**63 - 1
PAYLOAD_LIMIT_BYTES = 7_500

accounts = st.sampled_from([UUID(int=number) for number in range(300)])
reached = st.dictionaries(accounts, st.integers(0, LARGEST), max_size=200)


def test_p03_the_largest_message_stays_below_the_limit_in_bytes() -> None:
    everything = {uuid4(): LARGEST for _ in range(ACCOUNTS_MAX)}
    (wake_up,) = pack([PositionedEvent(LARGEST, everything)])
    assert wake_up.reached == everything
    assert len(encode(wake_up).encode()) < PAYLOAD_LIMIT_BYTES


@given(st.lists(st.tuples(st.integers(1, 2), reached), max_size=12))
def test_p03_whatever_happens_is_packed_without_a_hole_within_the_limit(
    steps: list[tuple[int, dict[UUID, int]]],
) -> None:
    positions = accumulate(step for step, _ in steps)
    events = [
        PositionedEvent(position, touched)
        for position, (_, touched) in zip(positions, steps, strict=True)
    ]
    covered: list[int] = []
    for wake_up in pack(events):
        assert len(encode(wake_up).encode()) < PAYLOAD_LIMIT_BYTES
        assert decode(encode(wake_up)) == wake_up
        covered += range(wake_up.first, wake_up.last + 1)
        inside = [event for event in events if wake_up.first <= event.position <= wake_up.last]
        if wake_up.reached is not None:
            assert wake_up.reached.keys() == {
                account for event in inside for account in event.reached
            }
    assert covered == [event.position for event in events]


def test_a_change_that_the_sequence_does_not_show_is_not_hidden_by_one_that_it_shows() -> None:
    """A capture moves held money and says UNTOLD; joined with an entry before or after it, it must stay that."""
    account = uuid4()
    for sequences in ([7, UNTOLD], [UNTOLD, 8]):
        events = [
            PositionedEvent(index + 1, {account: each}) for index, each in enumerate(sequences)
        ]
        assert list(pack(events)) == [WakeUp(1, 2, {account: UNTOLD})]
    assert merge_sequences(7, 8) == 8


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", '{"first":1}', '{"first":1,"last":2,"reached":{"x":1}}']
)
def test_what_nobody_can_read_is_known_as_such(text: str) -> None:
    assert decode(text) == Unreadable()


def test_resync_is_read_as_resync() -> None:
    assert decode(RESYNC) == Resync()
