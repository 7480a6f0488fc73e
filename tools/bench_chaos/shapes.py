"""Who runs where: 4 nodes of 2 cards, two groups, 12 jobs whose claims overlap."""
import dataclasses

NODES = ("n1", "n2", "n3", "n4")


@dataclasses.dataclass(frozen=True)
class Place:
    """A process of a job: its node and its cards there."""
    node: int
    cards: tuple


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    group: str
    places: tuple
    bytes: int  # on each of its cards; no two jobs fit one

    @property
    def claim(self):
        return {(place.node, card) for place in self.places for card in place.cards}


CARD, LARGE, SMALL, STRANGER = 8192 << 10, 5120 << 10, 4352 << 10, 3400 << 10  # a stranger fits beside a small one


def _shape(name, group, *places):
    bytes = LARGE if int(name[1]) % 2 else SMALL
    return Shape(name, group, tuple(Place(node, cards) for node, cards in places), bytes)


# Group g has n1:0 n1:1 n2:0 n3:0, group h has n2:1 n3:1 n4:0 n4:1: nodes are shared, cards are not.
SHAPES = (
    _shape("g1", "g", (0, (0,))),
    _shape("g2", "g", (0, (0, 1))),
    _shape("g3", "g", (0, (0,)), (1, (0,))),
    _shape("g4", "g", (1, (0,)), (2, (0,))),
    _shape("g5", "g", (2, (0,))),
    _shape("g6", "g", (0, (1,))),
    _shape("h1", "h", (3, (0,))),
    _shape("h2", "h", (3, (0, 1))),
    _shape("h3", "h", (3, (1,)), (2, (1,))),
    _shape("h4", "h", (2, (1,)), (1, (1,))),
    _shape("h5", "h", (1, (1,))),
    _shape("h6", "h", (3, (1,)), (1, (1,))),
)
