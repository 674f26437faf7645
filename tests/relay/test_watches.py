"""A watch keeps what its reader must look at, however much happens and however seldom he looks (E07)."""

import asyncio
from uuid import uuid4

from app.relay.messages import UNTOLD
from app.relay.watches import Watch, Watches
from tests.relay.support import PATIENCE_SECONDS, running

NOW = 0.0


async def test_a_watch_tells_which_of_its_accounts_moved_since_the_last_look() -> None:
    watches, one, other, foreign = Watches(), uuid4(), uuid4(), uuid4()
    watch = watches.add([one, other])
    assert await watch.changed(NOW) == frozenset()
    for sequence in (1, 2, 3):
        watches.tell(one, sequence)
    watches.tell(foreign, 1)
    assert await watch.changed(NOW) == {one}
    watches.tell(other, 1)
    watches.tell(one, 4)
    assert watch.take() == [other, one]
    assert await watch.changed(NOW) == frozenset()


async def test_whoever_waits_is_woken() -> None:
    watches, account = Watches(), uuid4()
    watch = watches.add([account])
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(watch.changed(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        watches.tell(account, 1)
    assert waiting.result() == {account}


async def test_news_of_what_the_reader_knows_is_none_and_the_unsaid_always_is() -> None:
    watches, account = Watches(), uuid4()
    watch = watches.add([account])
    watches.tell(account, 4)
    watch.seen(account, 5)
    watches.tell(account, 5)
    assert watch.take() == []
    watches.tell(account, 6)
    assert watch.take() == [account]
    for first, second in ((UNTOLD, 5), (5, UNTOLD), (UNTOLD, 6), (6, UNTOLD)):
        watches.tell(account, first)
        watches.tell(account, second)
        watch.seen(account, 6)
        assert watch.take() == [account], (first, second)
        watch.seen(account, 5)


async def test_news_that_the_reader_has_overtaken_does_not_end_his_waiting() -> None:
    watches, account = Watches(), uuid4()
    watch = watches.add([account])
    watches.tell(account, 1)
    watch.seen(account, 1)
    async with running(watch.changed(PATIENCE_SECONDS)) as (waiting,):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()


async def test_closing_frees_the_registry_and_ends_the_waiting() -> None:
    watches, one, other = Watches(), uuid4(), uuid4()
    watch, neighbour = watches.add([one, other]), watches.add([one])
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(watch.changed(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        watch.close()
    assert waiting.result() == frozenset()
    watch.close()
    assert len(watches) == 1
    assert await watch.changed(PATIENCE_SECONDS) == frozenset()
    watches.tell(one, 1)
    assert neighbour.take() == [one]
    neighbour.close()
    assert len(watches) == 0
    assert watches._by_account == {}


async def test_e07_ten_thousand_watches_that_nobody_reads_do_not_grow() -> None:
    watches, accounts = Watches(), [uuid4() for _ in range(500)]
    unread: list[Watch] = [watches.add([accounts[number % 500]]) for number in range(10_000)]
    for sequence in range(1, 21):
        for account in accounts:
            watches.tell(account, sequence)
        watches.tell_doubt()
    assert {len(watch._moved) for watch in unread} == {1}
    for watch in unread:
        watch.close()
    assert len(watches) == 0
