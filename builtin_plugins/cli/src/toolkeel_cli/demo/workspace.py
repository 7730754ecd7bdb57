"""The demo's workspace: a bookshop's notes, its order service in Python, and an export of 10,000 orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ORDERS = 10_000
HOLD_OVER = 495
_CITIES = ("Bergen", "Kraków", "Lyon", "Porto", "Tromsø", "Utrecht", "Wien", "Zürich", "Nuuk", "Tórshavn")
_BY_SEA = ("Nuuk", "Tórshavn")
_SHIPPED = ("shipped", "delivered", "delivered", "delivered", "returned")

_FILES = {
    "README.md": """\
# Harbour Books

The order service of a small bookshop. `shop/` takes orders and decides what happens to them, `data/orders.json` is this
year's export (one order on each line), `notes/` is what people wrote down.

Every order gets a status when it is placed: see `status_of`.
""",
    "notes/incident.md": """\
# Parcels that never leave

Three customers wrote that they paid weeks ago and nothing came. All three had ordered for a lot of money, and none of
them lives on the mainland. The warehouse says that these orders never reached them.

To find out: how many orders are held like that, what are they worth, and where is it decided?
""",
    "notes/todo.txt": "order tape\nask Ingrid about the customs form\npay the harbour fee before Friday\n",
    "shop/__init__.py": '"""The order service of Harbour Books."""\n',
    "shop/orders.py": '''\
"""Reads the export of orders."""

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True)
class Order:
    id: int
    day: str
    city: str
    status: str
    total: Decimal


def read_orders(path: Path) -> list[Order]:
    return [Order(**record) for record in json.loads(path.read_text(), parse_float=Decimal)]
''',
    "shop/rules.py": f'''\
"""Decides what happens to an order when it is placed."""

from decimal import Decimal

HOLD_OVER = Decimal("{HOLD_OVER}")
BY_SEA = frozenset({{"Nuuk", "Tórshavn"}})


def status_of(total: Decimal, city: str) -> str:
    """The first status of an order. What goes by sea and is worth a lot waits for its insurance."""
    if total > HOLD_OVER and city in BY_SEA:
        return "held"  # TODO: nobody releases these
    return "packing"
''',
    "shop/report.py": '''\
"""Sums up orders for the morning mail."""

from collections import Counter
from decimal import Decimal

from .orders import Order


def by_status(orders: list[Order]) -> Counter[str]:
    return Counter(order.status for order in orders)


def turnover(orders: list[Order]) -> Decimal:
    return sum((order.total for order in orders if order.status != "returned"), Decimal())
''',
}


def build(folder: Path) -> None:
    """Write the workspace into a folder; the same bytes every time."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    export = folder / "data" / "orders.json"
    export.parent.mkdir(exist_ok=True)
    export.write_text("[\n" + ",\n".join(_orders()) + "\n]\n", encoding="utf-8")


def _orders() -> Iterator[str]:
    dice = _Dice(20_260_105)
    for number in range(ORDERS):
        day = f"2026-{1 + number * 10 // ORDERS:02}-{1 + dice.roll(28):02}"
        city = _CITIES[dice.roll(len(_CITIES))]
        cents = 490 + dice.roll(49_510)
        held = cents > 100 * HOLD_OVER and city in _BY_SEA
        status = "held" if held else _SHIPPED[dice.roll(len(_SHIPPED))]
        total = f"{cents // 100}.{cents % 100:02}"
        yield f'{{"id":{100_001 + number},"day":"{day}","city":"{city}","status":"{status}","total":{total}}}'


class _Dice:
    """Numbers that are the same on every machine and in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def roll(self, sides: int) -> int:
        """A number from 0 to ``sides`` - 1."""
        self._state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (self._state >> 33) % sides
