"""`make torture`: seeded fault injection and fuzzing against real servers on this machine.

Each part plays rounds. A round does everything that is random from its own seed, so one command
replays it. Traffic goes to loopback addresses only.
"""
