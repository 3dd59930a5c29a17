"""The places that a traced block changes: what they hold before, after each branch and after each trip."""
from .backend import TENSORS, Tensor, Variable, tree


class Unset:
    """What a name holds that holds nothing."""

    def __repr__(self):
        return "not set"


UNSET = Unset()
NUMBERS = (bool, int, float)


class Block:
    """What rewrite.py says of a statement: the names its blocks bind or change in place, those read after it, those that a trip reads before it
    binds them, those whose containers change in place, the texts of lists appended to; likewise attributes assigned and those reached to be
    changed in place, (thunk of the object, name, text); and its line."""

    def __init__(self, names, live, live_inside, changed, grown, attributes, reached, line):
        self.names, self.live, self.live_inside, self.changed = names, frozenset(live), frozenset(live_inside), frozenset(changed)
        self.grown = frozenset(grown)
        self.attributes, self.reached, self.line = attributes, reached, line


class _Name:
    """A local name of the user's function: its cell."""

    def __init__(self, name, cell):
        self.text, self._cell = name, cell

    def read(self):
        try:
            return self._cell.cell_contents
        except ValueError:
            return UNSET

    def write(self, value):
        if value is not UNSET:
            self._cell.cell_contents = value
        elif self.read() is not UNSET:
            del self._cell.cell_contents


class _Global:
    def __init__(self, name, names):
        self.text, self._names = name, names

    def read(self):
        return self._names.get(self.text, UNSET)

    def write(self, value):
        if value is not UNSET:
            self._names[self.text] = value
        else:
            self._names.pop(self.text, None)


class _Attribute:
    def __init__(self, text, holder, name):
        self.text, self._holder, self._name = text, holder, name

    def read(self):
        return getattr(self._holder, self._name, UNSET)

    def write(self, value):
        if value is not UNSET:
            setattr(self._holder, self._name, value)
        elif self.read() is not UNSET:
            delattr(self._holder, self._name)


class Slot:
    """A place, and what the statement does with it."""

    def __init__(self, place, live=True, live_inside=True, changed=False, grows=False):
        self.place, self.live, self.carried, self.changed, self.grows = place, live, live or live_inside, changed, grows
        self.text = place.text
        self.is_flag = self.text.startswith("ag__")  # Set by the lowering of jumps: whatever it held before it was set is never read.

    def title(self):
        return "the result of the function" if self.text == "ag__result" else f"`{self.text}`"


class State:
    def __init__(self, block, function):
        """`function` is one of the block's functions, which has the cells of all names."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self.slots = []
        for name in block.names:
            place = _Name(name, cells[name]) if name in cells else _Global(name, function.__globals__)
            changed = name in block.changed
            self.slots.append(Slot(place, changed or name in block.live, changed or name in block.live_inside, changed, name in block.grown))
        for holder, name, text in block.attributes:
            self.slots.append(Slot(_Attribute(text, holder(None), name)))
        for holder, name, text in block.reached:
            self.slots.append(Slot(_Attribute(text, holder(None), name), changed=True, grows=text in block.grown))
        self.held = [slot.place.read() for slot in self.slots]
        self.start = self.take()

    def take(self):
        """The values now; of a container that blocks change in place, a copy."""
        return [copied(slot.place.read()) if slot.changed else slot.place.read() for slot in self.slots]

    def put(self, values):
        """Sets the places. A container that blocks change in place stays the same object, with other contents."""
        for slot, held, value in zip(self.slots, self.held, values):
            if slot.changed and type(value) is type(held) and type(held) in (list, dict, set):
                refill(held, value)
                value = held
            slot.place.write(copied(value) if isinstance(value, Collected) else value)

    def restore(self):
        self.put(self.start)


class Collected:
    """A list that a traced loop appends to: lists.py has its two kinds."""


CONTAINERS = (list, dict, set, Collected)


def copied(value):
    return value.copy() if isinstance(value, CONTAINERS) else value


def refill(container, contents):
    if container is contents:
        return
    if type(container) is list:
        container[:] = contents
    else:
        container.clear()
        container.update(contents)


def is_number_like(value):
    """Whether a value can be a result of a traced branch or a carry of a traced loop."""
    return isinstance(value, NUMBERS) or isinstance(value, TENSORS) and not isinstance(value, Variable)


class _Text:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def described(value):
    """A value in an error message: tensors by their types."""
    if isinstance(value, Collected):
        return "a list"
    leaves, structure = tree.flatten(value)
    return repr(structure.unflatten([_Text(_type_of(leaf)) for leaf in leaves]))


def _type_of(leaf):
    return f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]" if isinstance(leaf, Tensor) else repr(leaf)
