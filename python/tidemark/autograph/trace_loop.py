"""A loop of the program: the places that its trips change are its carries.

The body is traced again where a trace of it teaches something: the structure of a name that only the body sets, or how a list is appended to.
`_Again` then leaves the trace, which drops what was traced of the loop.
"""
from . import backend
from .backend import is_traced, refuse
from .branch import and_, condition
from .lists import Appends, Buffer, Chunk, Growing, TensorList, Trip, Unfit, joined, loops, parts, paths, rebuilt, stacked
from .state import NUMBERS, UNSET, described, is_number_like


class _Again(Exception):
    pass


class _Carry:
    """The value of one place, from trip to trip."""

    def __init__(self, loop, slot, value):
        self.loop, self.slot, self.start = loop, slot, value
        self.leaves, self.structure = ([None], None) if value is UNSET else parts(value)
        self.is_carried = [is_number_like(leaf) or leaf is None for leaf in self.leaves]

    def carries(self):
        return [leaf for leaf, is_carried in zip(self.leaves, self.is_carried) if is_carried]

    def names(self):
        every = [self.slot.title()] if self.structure is None else paths(self.structure, self.slot.text)
        return [name if "`" in name or self.structure is None else f"`{name}`" for name, is_carried in zip(every, self.is_carried) if is_carried]

    def filled(self, carries):
        """The value with carries from the iterator. What no trip has set yet is not set."""
        leaves = [next(carries) if is_carried else leaf for leaf, is_carried in zip(self.leaves, self.is_carried)]
        if self.start is UNSET and None in [leaf for leaf in leaves if leaf is None]:
            return UNSET
        return leaves[0] if self.structure is None else rebuilt(self.structure, leaves)

    def next(self, value):
        """The carries at the end of a trip."""
        leaves, structure = (None, None) if value is UNSET else parts(value)
        if self.start is UNSET and (self.structure is None or self.structure != structure):
            is_new = self.structure is None
            self.leaves, self.structure, self.is_carried = [None] * len(leaves), structure, [True] * len(leaves)
            if not is_new or len(leaves) != 1:
                raise _Again
        if structure != self.structure:
            self.refuse_change(self.start, value)
        return [after for before, after, is_carried in zip(self.leaves, leaves, self.is_carried) if self._is_next(before, after, is_carried)]

    def _is_next(self, before, after, is_carried):
        same = before is after or type(before) is type(after) and isinstance(before, (str, *NUMBERS)) and before == after
        if not (is_number_like(after) if is_carried else same) and not (is_carried and after is None):
            self.refuse_change(before, after)
        return is_carried

    def refuse_change(self, before, after):
        refuse(f"{self.loop}: {self.slot.title()} is {described(before)} at the start of a trip and {described(after)} at its end",
               "a traced loop carries tensors and numbers of one structure: give it such a value before the loop")


class TracedLoop:
    def __init__(self, name, state, body, condition=None, walk=None):
        self.name, self.state, self.body, self.condition, self.walk = name, state, body, condition, walk
        self.trips = walk.trips if walk is not None and not is_traced(walk.trips) else None
        # As what a list is traced that the loop changes in place, by the number of its slot: Trip, Buffer, list.
        self.kinds = {number: Trip for number, held in enumerate(state.held)
                      if state.slots[number].grows and isinstance(held, (list, TensorList))}
        self.rooms = {}  # Of what grows, by the number of its slot: None in the first trace.
        # What the loops around had added before this one: each trace of the body counts from there.
        self.added = [(held.appends, held.appends.added) for held in state.start if isinstance(held, Growing) and held.appends is not None]
        self.never_set = set()
        self.carried = {}
        self.trip_lists = {}  # What the trips append, by the number of the slot.

    def run(self):
        if isinstance(self.trips, int) and self.trips <= 0:
            return
        try:
            while not self._attempt():
                pass
        except BaseException:
            self.state.restore()
            raise
        finally:
            self.trip_lists = {}  # They name their owner, the loop.

    # ---- the start and the end of the loop ------------------------------------------------------

    def _attempt(self):
        """Traces the loop; False if it has to be traced again."""
        self.state.restore()
        for number, slot in enumerate(self.state.slots):
            if slot.carried and self.kinds.get(number) is not Trip and number not in self.carried and number not in self.never_set:
                self.carried[number] = _Carry(self.name, slot, self._start(number))
        try:
            self._finish(self._traced())
            return True
        except _Again:
            pass
        except Unfit as unfit:
            if unfit.owner[0] is not self:
                raise
            self.kinds[unfit.owner[1]] = unfit.kind
        return False

    def _start(self, number):
        """The value of a place before the first trip."""
        held = self.state.start[number]
        if isinstance(held, Growing) and held.grows():
            return held.with_room(self.rooms.setdefault(number, None))
        if self.kinds.get(number) is not Buffer:
            return held
        if isinstance(self.state.held[number], Trip):
            raise Unfit(self.state.held[number], Buffer)
        count = len(held)
        rows = joined(held, []) if count else None
        room = self.rooms.setdefault(number, None)
        room = count if room is None else room
        if rows is not None and room > count:
            rows = backend.concat([rows, backend.zeros((room - count, *rows.shape[1:]), rows.dtype)], 0)
        return Buffer(room, rows, backend.integer(count), Appends(count))

    def _traced(self):
        self.trip_lists = {number: None for number, kind in self.kinds.items() if kind is Trip}
        own = [leaf for carry in self.carried.values() for leaf in carry.carries()]
        names = [name for carry in self.carried.values() for name in carry.names()]
        test, trips, upper, walked = None, self.trips, None, self.walk.walked if self.walk else []
        self.counts = self.condition is not None and self.walk is not None  # The loop carries the number of the trip.
        if self.counts:
            own, names = [*own, backend.integer(0)], [*names, "the number of the trip"]
        elif self.walk is not None and (self.walk.needs_number or trips is None):
            trips, upper = None, self.walk.trips
        if self.condition is not None:
            test = self._test
        return backend.loop(self.name, own, names, self._body, test, trips, upper, walked)

    def _finish(self, results):
        results = iter(results)
        ends = [UNSET] * len(self.state.slots)
        for number, carry in self.carried.items():
            ends[number] = carry.filled(results)
            self._check_set(carry)
        if self.counts:
            next(results)
        for number, structure in self.trip_lists.items():
            ends[number] = self._collected(number, structure, results)
        self.state.put(ends)

    def _check_set(self, carry):
        """A name that only the loop sets is not set after no trip."""
        runs = isinstance(self.trips, int) and self.trips > 0
        if carry.start is UNSET and carry.slot.live and not carry.slot.is_flag and not runs:
            refuse(f"{self.name}: {carry.slot.title()} is read after the loop, which sets it only if it runs a trip", "give it a value before the loop")

    def _collected(self, number, structure, results):
        """A list after the loop that appended to it."""
        held = self.state.held[number]
        if structure is None or len(structure) == 2:
            return self.state.start[number]
        rows = stacked(structure, [next(results) for _ in structure[2:]])
        if isinstance(held, Trip):
            return Trip(held.owner, [*held.items(), Chunk(rows)])
        return TensorList(joined(self.state.start[number], [Chunk(rows)]))

    # ---- a trip ---------------------------------------------------------------------------------

    def _enter(self, carries):
        carries = iter(carries)
        values = list(self.state.start)
        for number, carry in self.carried.items():
            values[number] = carry.filled(carries)
        for number in self.trip_lists:
            values[number] = Trip((self, number))
        self.state.put(values)
        return next(carries) if self.counts else None

    def _test(self, carries):
        trip = self._enter(carries)
        if self.counts and self.trips is None:
            return backend.inner(and_(True, trip < self.walk.trips, lambda _: self.condition()))
        goes_on = self.condition()
        return condition(goes_on) if is_traced(goes_on) else backend.inner(goes_on)

    def _body(self, number, carries, slices):
        trip = self._enter(carries)
        self._count_anew()
        loops.trips.append(self.trips)
        try:
            self.body(backend.outer(self.walk.item(number if trip is None else trip, slices)) if self.walk else None)
        except UnboundLocalError as error:
            if error.name not in [carry.slot.text for carry in self.carried.values() if carry.start is UNSET]:
                raise
            refuse(f"{self.name}: `{error.name}` is read in a trip before it is set", "give it a value before the loop")
        finally:
            loops.trips.pop()
        ends = self.state.take()
        self._drop_unset(ends)
        given = [leaf for number, carry in self.carried.items() for leaf in carry.next(ends[number])]
        if self.counts:
            given.append(trip + 1)
        self._check_rooms()
        return given + [element for number in self.trip_lists for element in self._elements(number, ends[number])]

    def _drop_unset(self, ends):
        """What neither the loop nor anything before it sets is no carry."""
        unset = {number for number, carry in self.carried.items() if carry.start is UNSET and ends[number] is UNSET}
        if unset:
            self.never_set |= unset
            self.carried = {number: carry for number, carry in self.carried.items() if number not in unset}
            raise _Again

    def _grown(self):
        """What this loop makes room for: its number, room and Appends."""
        starts = ((number, room, self.carried[number].start) for number, room in self.rooms.items())
        return [(number, room, start.appends) for number, room, start in starts if isinstance(start, Growing)]

    def _count_anew(self):
        for appends, count in [*self.added, *((appends, 0) for _, _, appends in self._grown())]:
            appends.added = count

    def _check_rooms(self):
        for number, room, appends in self._grown():
            if room is None or room != appends.most():
                self.rooms[number] = appends.most()
                del self.carried[number]
                raise _Again

    def _elements(self, number, trip):
        """What a trip appends to a list, for the loop to stack."""
        leaves, self.trip_lists[number] = trip.parts()
        if leaves and (self.condition is not None or self.trips is None):
            raise Unfit(trip, Buffer)
        return leaves
