"""From the outbox to whoever watches an account: numbering, wake-ups between processes, live feeds.

Shape. A posting writes its event to the outbox. A `Relay` (drain) moves committed events to the event log, where each
gets the next position, and announces them (announcer) over a `BroadcastLink` (link), the one user of Broadcaster in a
process. A `Hub` hears the announcements and wakes the watches (watches) of the accounts that moved. A feed (feeds) owns
a watch and reads what is true from the tables.

Loss. Announcements may be lost, doubled or late: the log's positions have no holes, so a hub sees what it missed and
reads it there. So nothing here waits for the broker, and nothing that a client sees is taken from a message.
"""
