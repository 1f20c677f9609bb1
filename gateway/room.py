"""A room's rules. Each verb is a function of the room as it is, which returns it as it becomes, the same room where there is nothing to do,
or raises what is wrong. Nothing is stored here.

While its match is being made nothing of a room changes, so that making it may be repeated with the same players.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.registry import GAMES
from gloaming.gateway.v1 import gateway_pb2
from gloaming.table.v1 import table_pb2
from services.kit.errors import Forbidden, Refused

OPEN, STARTING, STARTED = gateway_pb2.Room.OPEN, gateway_pb2.Room.STARTING, gateway_pb2.Room.STARTED
# So many of those who were sent out last may not come back.
MOST_BARRED = 100


class Member(msgspec.Struct, frozen=True):
    """Somebody in a room.

    Args:
        player: the player's id; empty for a bot.
        name: the name that others see: a player's when they came.
        ready: whether the player is ready for the match. Bots always are, and so is the host, who says when it starts.
        mark: names the request that added a bot, so that repeating it adds no other.
    """

    player: str
    name: str
    ready: bool
    mark: str = ""


class Room(msgspec.Struct, frozen=True):
    """A room, as it is stored.

    Args:
        mark: names the request that opened it.
        options: the game's options, packed.
        settings: the platform's, packed.
        seats: how many may come, bots included.
        barred: players that were sent out and may not come back, the last of them last.
        match_id: of the match that is being made, or is there.
        ticket_id: the ticket with which its players look for others.
        version: how often it has changed, from 1.
    """

    code: str
    mark: str
    game: str
    options: bytes
    settings: bytes
    seats: int
    host: str
    members: tuple[Member, ...]
    status: int = OPEN
    barred: tuple[str, ...] = ()
    match_id: str = ""
    ticket_id: str = ""
    version: int = 1

    @property
    def players(self) -> tuple[str, ...]:
        """The ids of those who are there, in the order in which they came; bots left out."""
        return tuple(member.player for member in self.members if member.player)

    def message(self, expires_ms: int) -> gateway_pb2.Room:
        """Returns the room as anybody may see it who knows its code.

        Args:
            expires_ms: when it ends, in ms since the epoch.
        """
        room = gateway_pb2.Room(
            code=self.code,
            game=self.game,
            options=self.options,
            settings=table_pb2.Settings.FromString(self.settings),
            seats=self.seats,
            host=self.host,
            status=gateway_pb2.Room.Status.Name(self.status),
            # Until the match is there, nobody could do anything with its id.
            match_id=self.match_id if self.status == STARTED else "",
            ticket_id=self.ticket_id,
            version=self.version,
        )
        for member in self.members:
            bot = table_pb2.Bot.KIND_UNSPECIFIED if member.player else table_pb2.Bot.STANDARD
            room.members.add(player=member.player, name=member.name, bot=bot, ready=member.ready)
        room.expire_time.FromMilliseconds(expires_ms)
        return room


def opened(code: str, mark: str, asked: gateway_pb2.CreateRoomRequest, player: str, name: str) -> Room:
    """A new room, its host in it."""
    settings = asked.settings.SerializeToString(deterministic=True)
    return Room(code, mark, asked.game, asked.options, settings, asked.seats, player, (Member(player, name, ready=True),))


def join(room: Room, player: str, name: str) -> Room:
    """Somebody comes; nothing changes for who is there.

    Raises:
        Forbidden: KICKED.
        Refused: ROOM_STARTED, ROOM_FULL.
    """
    if player in room.players:
        return room
    if player in room.barred:
        raise Forbidden("KICKED", "the host has sent you out of this room")
    _check_open(room)
    _check_free(room)
    return _with(room, (*room.members, Member(player, name, ready=False)))


def leave(room: Room, player: str) -> Room:
    """Somebody goes; nothing changes for who is not there. Without players the room has ended (`players` is empty).

    Raises:
        Refused: ROOM_STARTED; the match is being made.
    """
    if player not in room.players:
        return room
    if room.status == STARTING:
        raise Refused("ROOM_STARTED", "the room's match is being made")
    return _with(room, _without(room, player))


def kick(room: Room, caller: str, player: str) -> Room:
    """The host sends somebody out, for as long as there is the room; nothing changes for who was sent out before.

    Raises:
        Forbidden: NOT_A_MEMBER, NOT_THE_HOST.
        Refused: ROOM_STARTED, KICKS_ONESELF, NO_SUCH_MEMBER.
    """
    _check_host(room, caller)
    if player == caller:
        raise Refused("KICKS_ONESELF", "whoever wants to go leaves")
    if player in room.barred:
        return room
    _check_open(room)
    if player not in room.players:
        raise Refused("NO_SUCH_MEMBER", "there is no such player in this room")
    return _with(room, _without(room, player), barred=(*room.barred, player)[-MOST_BARRED:])


def add_bot(room: Room, caller: str, mark: str) -> Room:
    """The host adds a bot.

    Raises:
        Forbidden: NOT_A_MEMBER, NOT_THE_HOST.
        Refused: ROOM_STARTED, ROOM_FULL.
    """
    _check_host(room, caller)
    if any(member.mark == mark for member in room.members):
        return room
    _check_open(room)
    _check_free(room)
    return _with(room, (*room.members, Member("", "Bot", ready=True, mark=mark)))


def remove_bot(room: Room, caller: str) -> Room:
    """The host removes the bot that was added last.

    Raises:
        Forbidden: NOT_A_MEMBER, NOT_THE_HOST.
        Refused: ROOM_STARTED, NO_BOT.
    """
    _check_host(room, caller)
    _check_open(room)
    bots = [index for index, member in enumerate(room.members) if not member.player]
    if not bots:
        raise Refused("NO_BOT", "there is no bot in this room")
    return _with(room, (*room.members[: bots[-1]], *room.members[bots[-1] + 1 :]))


def say_ready(room: Room, player: str, ready: bool) -> Room:
    """Somebody says whether they are ready. They stay so, whoever comes or goes.

    Raises:
        Forbidden: NOT_A_MEMBER.
        Refused: ROOM_STARTED; HOST_IS_READY, the host cannot be other.
    """
    _check_member(room, player)
    if not ready and player == room.host:
        raise Refused("HOST_IS_READY", "the host is always ready: it starts when the host says so")
    if all(member.ready == ready for member in room.members if member.player == player):
        return room
    _check_open(room)
    return _with(room, (msgspec.structs.replace(member, ready=ready) if member.player == player else member for member in room.members))


def start(room: Room, player: str, match_id: str) -> Room:
    """The host has the match made, under this id; nothing changes where that has begun before, whoever of the members says so.

    Raises:
        Forbidden: NOT_A_MEMBER, NOT_THE_HOST.
        Refused: TOO_FEW_MEMBERS, NOT_READY.
    """
    _check_member(room, player)
    if room.status != OPEN:
        return room
    _check_host(room, player)
    fewest = GAMES[room.game].min_seats
    if len(room.members) < fewest:
        raise Refused("TOO_FEW_MEMBERS", f"the game takes at least {fewest}; add bots, or wait for others")
    _check_ready(room)
    return _changed(room, status=STARTING, match_id=match_id, ticket_id="")


def started(room: Room, match_id: str) -> Room:
    """The match of this id is there."""
    return _changed(room, status=STARTED) if _is_making(room, match_id) else room


def reopened(room: Room, match_id: str) -> Room:
    """The match of this id was refused."""
    return _changed(room, status=OPEN, match_id="") if _is_making(room, match_id) else room


def party(room: Room, caller: str) -> tuple[str, ...]:
    """Returns who is to be matched together, in the order in which they came; the host asks.

    Raises:
        Forbidden: NOT_A_MEMBER, NOT_THE_HOST.
        Refused: ROOM_STARTED, NOT_READY.
    """
    _check_host(room, caller)
    _check_open(room)
    _check_ready(room)
    return room.players


def queued(room: Room, ticket_id: str) -> Room:
    """Its players look for others with this ticket.

    Raises:
        Refused: ROOM_STARTED.
    """
    _check_open(room)
    return _changed(room, ticket_id=ticket_id)


def unqueued(room: Room, ticket_id: str) -> Room:
    """The ticket of this id has ended."""
    return _changed(room, ticket_id="") if ticket_id and room.ticket_id == ticket_id else room


def _is_making(room: Room, match_id: str) -> bool:
    return room.status == STARTING and room.match_id == match_id


def _without(room: Room, player: str) -> tuple[Member, ...]:
    return tuple(member for member in room.members if member.player != player)


def _with(room: Room, members: Iterable[Member], **more: Any) -> Room:
    """The room with other members: it always has a host among them, who is ready. A ticket of the members that were is theirs no more."""
    kept = tuple(members)
    players = [member.player for member in kept if member.player]
    host = room.host if room.host in players else players[0] if players else ""
    kept = tuple(msgspec.structs.replace(member, ready=True) if member.player == host and not member.ready else member for member in kept)
    return _changed(room, members=kept, host=host, ticket_id="", **more)


def _changed(room: Room, **changes: Any) -> Room:
    after = msgspec.structs.replace(room, **changes)
    return room if after == room else msgspec.structs.replace(after, version=room.version + 1)


def _check_member(room: Room, player: str) -> None:
    if player not in room.players:
        raise Forbidden("NOT_A_MEMBER", "you are not in this room")


def _check_host(room: Room, player: str) -> None:
    _check_member(room, player)
    if player != room.host:
        raise Forbidden("NOT_THE_HOST", "only the room's host may do this")


def _check_open(room: Room) -> None:
    if room.status != OPEN:
        raise Refused("ROOM_STARTED", "the room's match has begun")


def _check_free(room: Room) -> None:
    if len(room.members) >= room.seats:
        raise Refused("ROOM_FULL", f"all {room.seats} seats of this room are taken")


def _check_ready(room: Room) -> None:
    if waiting := sum(not member.ready for member in room.members):
        raise Refused("NOT_READY", f"{waiting} of {len(room.members)} are not ready yet")
