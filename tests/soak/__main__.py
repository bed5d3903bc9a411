"""``python -m tests.soak --seconds S``: twenty messages a second over two hundred chats."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.bridge.bridges import AGENTS, AS_PEOPLE_START_IT, BridgeProcess
from tests.hostile.bridge.crowd import Crowd
from tests.hostile.nodes import NodeProcess
from tests.soak.load import Load
from tests.soak.meter import Meter
from tests.telegram.botapi import BotApi, Limits

CHATS = 200
PER_S = 20.0
LOOK_S = 5.0
GROWTH_MAX_MB = {"bridge": 10.0, "node": 55.0}
"""In an hour. A node holds 16 MB of pages for each of two connections, and the ids of what was said
in the conversations that are in use."""
HANDLES_MAX = 20
SAID_EVERY_S = 60.0
DRAIN_S = 60.0


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def soak(home: Path, seconds: float, chats: int, per_s: float) -> bool:
    """Whether all went well."""
    with BotApi() as api:
        node = NodeProcess(home, "--no-gossip", "--no-dht", "--agents", str(AGENTS))
        bridge = BridgeProcess(home, api, AS_PEOPLE_START_IT)
        try:
            bridge.ready()
            load = Load(Crowd(api, chats, slow=0), per_s)
            load.crowd.come_in(bridge.bot)
            api.run(lambda: setattr(api.flood, "limits", Limits()))
            meters = [Meter("bridge", bridge.process.pid), Meter("node", node.pid)]
            run(load, meters, seconds)
            done = load.drained(DRAIN_S)
            status = bridge.stop().status
            say(f"{load.sent} messages, {load.answered} answered, {load.late_p95():.0f} ms p95")
            flooded = sum(
                count
                for key, count in api.record.counts.items()
                if isinstance(key, tuple) and key[1] == 429
            )
            say(f"refused for flooding: {flooded}; put aside: {status.aside}; {status.post}")
            flat = [report(meter) for meter in meters]
            return done and all(flat) and not flooded and not status.aside and not status.post.dead
        finally:
            bridge.put_away()
            if node.alive:
                node.kill()


def run(load: Load, meters: list[Meter], seconds: float) -> None:
    """Write at an even pace, look now and then, and say how it goes."""
    began = time.monotonic()
    looked, said = -LOOK_S, -SAID_EVERY_S
    while (now := time.monotonic() - began) < seconds:
        load.go_on(now)
        if now - looked >= LOOK_S:
            looked = now
            sizes = [meter.look(now) for meter in meters]
            load.tidy()
            if now - said >= SAID_EVERY_S:
                said = now
                shown = ", ".join(
                    f"{meter.name} {memory:.1f} MB {handles} handles"
                    for meter, (memory, handles) in zip(meters, sizes, strict=True)
                )
                say(f"{now:6.0f} s  {load.sent} sent, {load.open} open; {shown}")
        time.sleep(0.5 / load.per_s)


def report(meter: Meter) -> bool:
    memory, handles = meter.growth()
    say(f"{meter.name}: grew by {memory:+.1f} MB and {handles:+d} handles after the warm-up")
    return memory <= GROWTH_MAX_MB[meter.name] and handles <= HANDLES_MAX


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--chats", type=int, default=CHATS)
    parser.add_argument("--per-s", type=float, default=PER_S)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        well = soak(Path(folder) / "home", options.seconds, options.chats, options.per_s)
    say("flat" if well else "NOT FLAT, or something went wrong")
    sys.exit(not well)


if __name__ == "__main__":
    main()
