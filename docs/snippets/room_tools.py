"""Tools around meeting rooms: what a tool can say about itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from toolkeel import Data, Key, Scope, ToolContext, ToolError, raw_tool, tool

bookings: dict[str, list[str]] = {"4.12": [], "4.13": []}
"""Stands for the calendar that a real plugin would talk to."""


# [start:keys]
def room(arguments: Mapping[str, Any], _scope: Scope) -> Iterable[Key]:
    """The one room that a call names."""
    return [("room", arguments["room"])]


@tool(effect="read", reads=room)
def room_bookings(room: str) -> list[str]:
    """List who has booked a room today.

    Args:
        room: the room's number, such as 4.12.
    """
    return bookings.get(room, [])


# [end:keys]


# [start:book]
@tool(effect="write", writes=room)
def room_book(room: str, who: str, part: Literal["morning", "afternoon"] = "morning") -> str:
    """Book a room for half of today.

    Args:
        room: the room's number, such as 4.12.
        who: for whom it is booked.
        part: which half of the day.
    """
    bookings.setdefault(room, []).append(f"{part}: {who}")
    return f"Room {room} is booked for {who} this {part}."


# [end:book]


# [start:cancel]
@tool(effect="destructive", writes=room)
def room_cancel(room: str, who: str) -> str:
    """Cancel somebody's bookings of a room.

    Args:
        room: the room's number, such as 4.12.
        who: whose bookings go.
    """
    kept = [booking for booking in bookings.get(room, []) if not booking.endswith(f": {who}")]
    if len(kept) == len(bookings.get(room, [])):
        raise ToolError(f"{who} has not booked room {room}", remedy="room_bookings lists who has")
    bookings[room] = kept
    return f"Room {room} is free of bookings for {who}."


# [end:cancel]


# [start:import]
def rooms_of_lines(arguments: Mapping[str, Any], _scope: Scope) -> Iterable[Key]:
    """The rooms that the lines name."""
    return [("room", line.partition(" ")[0]) for line in arguments["lines"]]


@tool(effect="write", writes=rooms_of_lines)
async def room_import(lines: list[str], context: ToolContext) -> str:
    """Import bookings, one a line: the room, a space, for whom.

    Args:
        lines: such as "4.12 Ann".
    """
    for done, line in enumerate(lines):
        number, _, who = line.partition(" ")
        await context.call("room_book", {"room": number, "who": who})
        context.progress(done + 1, len(lines), number)
    return f"{len(lines)} bookings imported for {context.principal.name}."


# [end:import]


# [start:raw]
def counted(arguments: Mapping[str, Any], _scope: Scope) -> Iterable[Key]:
    """The rooms whose bookings are counted."""
    return [("room", number) for number in arguments["rooms"]]


async def _count(arguments: Mapping[str, Any], _context: ToolContext) -> Data:
    return Data({room: len(bookings.get(room, [])) for room in arguments["rooms"]})


room_counts = raw_tool(
    "room_counts",
    "Count today's bookings of several rooms.",
    {
        "type": "object",
        "properties": {
            "rooms": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "their numbers"}
        },
        "required": ["rooms"],
    },
    _count,
    effect="read",
    reads=counted,
)
# [end:raw]

TOOLS = (room_bookings, room_book, room_cancel, room_import, room_counts)
