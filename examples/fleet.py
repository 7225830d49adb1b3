"""A small simulated fleet: robots with real sessions, for demos and for trying things out.

    python examples/fleet.py -e tcp/127.0.0.1:7447 --robots 3 --seconds 30

Each robot publishes its pose at 100 Hz (numbered, with a cache), its battery, JSON events and now
and then a large image; it answers queries for its status, and holds a liveliness token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import time
from contextlib import AsyncExitStack

from zenwire import aio
from zenwire.aio import ext

POSE_HZ = 100
IMAGE = 400_000
BLOCK = aio.CongestionControl.BLOCK


class Robot:
    """Drives in circles, and tells about it."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.battery = 100.0
        self.random = random.Random(seed)
        self.phase = self.random.uniform(0, 2 * math.pi)

    def pose(self, now: float) -> tuple[float, float, float]:
        angle = self.phase + now / 5
        return 10 * math.cos(angle), 10 * math.sin(angle), angle % (2 * math.pi)

    async def run(self, config: aio.Config, seconds: float) -> None:
        ends = time.monotonic() + seconds
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(aio.open(config))
            key = f"fleet/{self.name}"
            token = session.liveliness().declare_token(f"{key}/alive")
            await stack.enter_async_context(token)
            status = session.declare_queryable(f"{key}/status", self.answer)
            await stack.enter_async_context(status)
            pose = ext.declare_advanced_publisher(
                session,
                f"{key}/pose",
                encoding="zenoh/serialized;(float64,float64,float64)",
                cache=ext.CacheConfig(max_samples=10 * POSE_HZ),
                sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.5),
                congestion_control=BLOCK,
            )
            poses = await stack.enter_async_context(pose)
            async with asyncio.TaskGroup() as all_of_it:
                all_of_it.create_task(self.drive(poses, ends))
                all_of_it.create_task(self.talk(session, key, ends))

    async def drive(self, poses: ext.AdvancedPublisher, ends: float) -> None:
        due = time.monotonic()
        while due < ends:
            values = tuple(map(ext.Float64, self.pose(due)))
            await poses.put(ext.z_serialize(values))
            due += 1 / POSE_HZ
            await asyncio.sleep(max(due - time.monotonic(), 0))

    async def talk(self, session: aio.Session, key: str, ends: float) -> None:
        while time.monotonic() < ends:
            self.battery = max(self.battery - self.random.uniform(0, 0.4), 0)
            text = f"{self.battery:.1f}"
            await session.put(f"{key}/battery", text, encoding="text/plain")
            if self.random.random() < 0.5:
                what = self.random.choice(["docked", "obstacle", "lost_gps", "mission_done"])
                event = json.dumps({"event": what, "battery": round(self.battery, 1)})
                await session.put(
                    f"{key}/events", event, encoding="application/json", congestion_control=BLOCK
                )
            if self.random.random() < 0.3:
                image = self.random.randbytes(IMAGE)
                await session.put(f"{key}/camera", image, encoding="image/jpeg")
            await asyncio.sleep(0.5)

    async def answer(self, query: aio.Query) -> None:
        with query:
            status = {"robot": self.name, "battery": self.battery}
            await query.reply(
                f"fleet/{self.name}/status", json.dumps(status), encoding="application/json"
            )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-m", "--mode", default="client", choices=["client", "peer"])
    parser.add_argument("-e", "--connect", default="tcp/127.0.0.1:7447", metavar="ENDPOINT")
    parser.add_argument("--robots", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="number of the first robot")
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    config = aio.Config.from_dict(
        {
            "mode": args.mode,
            "connect": {"endpoints": [args.connect]},
            "scouting": {"multicast": {"enabled": False}},
            "timestamping": {"enabled": True},
        }
    )
    numbers = range(args.first, args.first + args.robots)
    robots = [Robot(f"robot{n}", seed=n) for n in numbers]
    await asyncio.gather(*(robot.run(config, args.seconds) for robot in robots))


if __name__ == "__main__":
    asyncio.run(main())
