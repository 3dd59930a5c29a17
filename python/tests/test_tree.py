"""td.tree: structures taken apart and put together."""
import collections
import dataclasses
import gc
import weakref

import pytest

import tidemark as td

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Batch:
    image: object
    label: object = None


class Pair:
    def __init__(self, a, b, name):
        self.a, self.b, self.name = a, b, name


td.tree.register(Pair, lambda p: ((p.a, p.b), p.name), lambda name, ab: Pair(*ab, name))

NESTED = {"b": [1, (2, None)], "a": Point(3, {"z": 4}), "c": Batch(5), "d": Pair(6, 7, "p")}


def test_leaves_come_in_the_order_of_keys_and_go_back():
    leaves, treedef = td.tree.flatten(NESTED)
    assert leaves == [3, 4, 1, 2, 5, 6, 7]
    again = treedef.unflatten([leaf * 10 for leaf in leaves])
    assert again["a"] == Point(30, {"z": 40}) and isinstance(again["a"], Point)
    assert again["b"] == [10, (20, None)]
    assert again["c"] == Batch(50)
    assert (again["d"].a, again["d"].b, again["d"].name) == (60, 70, "p")
    assert list(again) == ["b", "a", "c", "d"], "a dict keeps the order in which it was filled"


def test_paths_read_as_python():
    assert td.tree.paths(NESTED, "x") == [
        "x['a'].x", "x['a'].y['z']", "x['b'][0]", "x['b'][1][0]", "x['c'].image", "x['d'][0]", "x['d'][1]"]


@pytest.mark.parametrize("other, same", [
    ({"b": 1, "a": 2}, True), ({"a": 1, "c": 2}, False), ({"a": 1, "b": (2,)}, False), ({"a": 1, "b": None}, False)])
def test_treedefs_compare_by_structure(other, same):
    one, two = td.tree.structure({"a": 0, "b": 0}), td.tree.structure(other)
    assert (one == two) is same
    assert (hash(one) == hash(two)) is same


def test_a_treedef_shows_its_structure():
    assert repr(td.tree.structure({"a": 1, "b": [2, None]})) == "TreeDef({'a': *, 'b': [*, None]})"


def test_map_takes_several_trees():
    assert td.tree.map(lambda a, b: a + b, [1, {"k": 2}], [10, {"k": 20}]) == [11, {"k": 22}]


def test_what_does_not_fit_is_refused_with_the_place():
    with pytest.raises(td.UserError) as caught:
        td.tree.map(lambda a, b: a, {"a": [1, 2]}, {"a": [1, 2, 3]})
    text = str(caught.value).splitlines()
    assert text[0] == ("tree.map: tree 2 has another structure than the first: "
                       "tree['a']: a list of 2 items became a list of 3 items")
    assert text[2] == "  give trees of one structure"
    with pytest.raises(td.UserError, match="tree.unflatten: the structure has 1 leaves, got 2"):
        td.tree.unflatten(td.tree.structure(1), [1, 2])
    with pytest.raises(td.UserError, match="tree.register: Pair is registered already"):
        td.tree.register(Pair, len, len)


def test_errors_of_users_functions_pass_through():
    class Bad:
        pass
    td.tree.register(Bad, lambda b: 1 / 0, len)
    with pytest.raises(ZeroDivisionError):
        td.tree.flatten([Bad()])
    with pytest.raises(ZeroDivisionError):
        td.tree.map(lambda x: 1 / 0, [1])


def test_a_cycle_is_an_error_and_no_crash():
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        td.tree.flatten(loop)


def test_nothing_is_held():
    gc.disable()
    try:
        leaf = Pair(1, 2, "x")
        gone = weakref.ref(leaf)
        leaves, treedef = td.tree.flatten({"k": (leaf.a, [leaf.b])})
        treedef.unflatten(leaves)
        td.tree.map(lambda x: x, [leaf])
        del leaf, leaves, treedef
        assert gone() is None
    finally:
        gc.enable()


def test_none_is_part_of_the_structure():
    assert td.tree.leaves(None) == [] and td.tree.leaves([None, 1]) == [1]
    assert td.tree.map(lambda x: x + 1, (None, 1)) == (None, 2)


@pytest.mark.parametrize("make", [lambda: td.spec((2,)), lambda: td.random.Key(1), lambda: td.Dim(3), lambda: td.Static(1), lambda: td.tree.flatten([1])[1]])
def test_objects_compare_with_objects_of_others(make):
    assert make() == make()
    for other in (None, "x", object()):
        assert not make() == other
        assert make() != other
