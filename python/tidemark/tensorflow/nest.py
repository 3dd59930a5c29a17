"""tf.nest: structures of lists, tuples, named tuples and dicts. Dicts are read in the order of their sorted keys, as in TensorFlow."""


def is_nested(structure):
    return isinstance(structure, (list, tuple, dict))


def _children(structure):
    return [structure[key] for key in sorted(structure)] if isinstance(structure, dict) else list(structure)


def _like(structure, children):
    if isinstance(structure, dict):
        named = dict(zip(sorted(structure), children))
        return type(structure)((key, named[key]) for key in structure)
    if hasattr(structure, "_fields"):
        return type(structure)(*children)
    return type(structure)(children)


def flatten(structure, expand_composites=False):
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    leaves = iter(flat_sequence)
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(f"Structure had {count} atoms, but flat_sequence had {len(flat_sequence)} items.")
    return _packed(structure, leaves)


def _packed(structure, leaves):
    if not is_nested(structure):
        return next(leaves)
    return _like(structure, [_packed(child, leaves) for child in _children(structure)])


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"The two structures don't have the same nested structure: {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        return
    if check_types and isinstance(nest1, dict) != isinstance(nest2, dict):
        raise TypeError(f"The two structures have different types: {type(nest1)} and {type(nest2)}")
    keys = [sorted(n) if isinstance(n, dict) else len(n) for n in (nest1, nest2)]
    if keys[0] != keys[1]:
        raise ValueError(f"The two structures don't have the same number of elements: {nest1!r} and {nest2!r}")
    for a, b in zip(_children(nest1), _children(nest2)):
        assert_same_structure(a, b, check_types)


def map_structure(func, *structures, **options):
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types=options.get("check_types", True))
    if not is_nested(structures[0]):
        return func(*structures)
    parts = [map_structure(func, *children, **options) for children in zip(*map(_children, structures))]
    return _like(structures[0], parts)
