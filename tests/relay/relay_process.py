"""A relay as a process of its own, to be killed: `python -m tests.relay.relay_process URL`."""

import asyncio
import sys
from functools import partial

from app.database import Database
from app.relay.broadcast import open_broadcast
from app.relay.drain import Relay, RelayPace
from app.relay.link import BroadcastLink


async def main(url: str) -> None:
    pool = Database(url, pool_size=3, probes_only=True)
    link = BroadcastLink(partial(open_broadcast, None, url))
    relay = Relay(pool, link, RelayPace(batch_max=3, poll_seconds=0.005, gather_seconds=0.0))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(link.run())
        tasks.create_task(relay.run())
        print("ready", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
