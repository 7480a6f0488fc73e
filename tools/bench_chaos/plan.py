"""What strikes when: made from a seed and nothing else, so that a seed reproduces its schedule."""
import dataclasses
import random

from shapes import NODES, SHAPES

PER_MINUTE = 180  # so that two minutes have 200 that bite

# Of each kind: what it strikes, and how often it is drawn beside the others.
KINDS = {
    "master-killed": ("master", 1), "master-restarted": ("master", 1), "master-stopped": ("master", 1),
    "node-killed": ("node", 1), "node-restarted": ("node", 1), "node-stopped": ("node", 1),
    "both-killed": ("both", 1),
    "link-cut": ("node", 1), "link-stalled": ("node", 1),
    "rank-killed": ("rank", 1), "rank-stopped": ("rank", 1), "rank-crashes-in-lock": ("rank", 1),
    "lock-slow": ("rank", 1), "lock-fails": ("rank", 1), "lock-hangs": ("rank", 1),
    "save-slow": ("rank", 1), "save-fails": ("rank", 1), "save-hangs": ("rank", 1),
    "restore-slow": ("rank", 1), "restore-hangs": ("rank", 1), "restore-fails": ("rank", 1), "unlock-fails": ("rank", 1),
    "reply-lost": ("rank", 1), "late-release": ("rank", 2), "stranger": ("card", 2),
}


@dataclasses.dataclass(frozen=True)
class Strike:
    at: float  # seconds from the start
    kind: str
    target: tuple  # () the master; (node,); (job, rank); (node, card)
    lasts: float  # seconds, of those that last


def _target(rng, what):
    if what == "master":
        return ()
    if what in ("node", "both"):
        return (rng.randrange(len(NODES)),)
    if what == "card":
        return (rng.randrange(len(NODES)), rng.randrange(2))
    shape = rng.choice(SHAPES)
    return (shape.name, rng.randrange(len(shape.places)))


def schedule(seed, minutes):
    """The strikes in the order of their times; each kind as often as any other, in an order of chance."""
    rng = random.Random(seed)
    count = round(PER_MINUTE * minutes)
    kinds = [kind for kind, (_, weight) in KINDS.items() for _ in range(weight)]
    drawn = []
    while len(drawn) < count:
        drawn += rng.sample(kinds, len(kinds))
    times = sorted(rng.uniform(0, minutes * 60) for _ in range(count))
    return [Strike(round(at, 3), kind, _target(rng, KINDS[kind][0]), round(rng.uniform(0.1, 0.4), 3))
            for at, kind in zip(times, drawn)]
