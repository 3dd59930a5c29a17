"""Makes a program that is wrong small: what it is wrong without goes."""

from generate import remove_unused
from program_text import NAME_LISTS, is_number, names_used, plain, walk


def shrunk(program, wrong, compare, most=160):
    """The smallest program found with one of the same modes wrong in the same way, and what is said of it."""
    mode, kind = wrong[0][0], kind_of(wrong[0][1])
    best = program.copy()
    best.modes = list(dict.fromkeys(["eager.value", mode]))
    tries = 0

    def still(candidate):
        for _, said in compare(candidate):
            for name, text in said:
                if name == mode and kind_of(text) == kind:
                    return said
        return None

    said = still(best)
    if said is None:
        return program, wrong
    progress = True
    while progress and tries < most:
        progress = False
        for candidate in candidates(best):
            if tries >= most:
                break
            if candidate.text() == best.text():
                continue
            tries += 1
            now = still(candidate)
            if now is not None:
                best, said, progress = candidate, now, True
                break
    return best, said


def kind_of(text):
    """What must stay the same of what is said: the beginning of an error, or that there is another one."""
    return text[:32] if text.startswith("error") else text.split(" ")[0]


def candidates(program):
    """Programs with something less, the larger pieces first."""
    for i in range(len(program.results)):
        if len(program.results) > 1:
            other = program.copy()
            del other.results[i]
            yield cleaned(other)
    for number in reversed(range(count(program))):
        yield from without(program, number)
    for number in range(len(program.arguments)):
        for change in ("layout", "differentiated"):
            other = program.copy()
            argument = other.arguments[number]
            if change == "layout" and argument.layout != "plain":
                argument.layout = "plain"
            elif change == "differentiated" and argument.differentiated and sum(a.differentiated for a in other.arguments) > 1:
                argument.differentiated = False
            else:
                continue
            yield other
    for number in range(count(program)):
        yield from simpler(program, number)


def count(program):
    return sum(1 for _ in walk(program.body))


def at(program, number):
    return list(walk(program.body))[number]


def cleaned(program):
    remove_unused(program)
    return program


def without(program, number):
    """A statement's results replaced by something it reads."""
    statement = at(program, number)
    if not statement.outs:
        other = program.copy()
        remove(other.body, at(other, number))
        yield cleaned(other)
        return
    sources = list(dict.fromkeys(n for n in names_used(statement) if not is_number(n)))
    inside = {n for b in statement.blocks for n in b.params}
    for source in [s for s in sources if s not in inside][:4]:
        other = program.copy()
        for out in statement.outs:
            rename(other, out, source)
        remove(other.body, at(other, number))
        yield cleaned(other)


def simpler(program, number):
    statement = at(program, number)
    for name in ("save", "chunk", "parallel_iterations", "max_iterations", "reverse"):
        if name in statement.attrs:
            other = program.copy()
            del at(other, number).attrs[name]
            yield other
    if any(o.endswith("!") for o in statement.operands):
        other = program.copy()
        chosen = at(other, number)
        chosen.operands = [plain(o) for o in chosen.operands]
        yield other
    if statement.op == "fori_loop" and statement.operands[1] not in ("0", "1"):
        other = program.copy()
        at(other, number).operands[1] = str(int(statement.operands[1]) - 1) if statement.operands[1].isdigit() else "1"
        yield other


def remove(body, statement):
    for i, one in enumerate(body):
        if one is statement:
            del body[i]
            return
        for block in one.blocks:
            remove(block.body, statement)


def rename(program, old, new):
    """Every reading of a name becomes one of another; what was given away there stays."""
    def name_of(text):
        return new if plain(text) == old else plain(text) if plain(text) == new else text

    program.results = [new if name == old else name for name in program.results]
    for statement in walk(program.body):
        statement.operands = [name_of(text) for text in statement.operands]
        for attr in NAME_LISTS:
            if attr in statement.attrs:
                statement.attrs[attr] = ",".join(name_of(n) for n in statement.attrs[attr].split(","))
        if "at" in statement.attrs:
            statement.attrs["at"] = ";".join("@" + new if item == "@" + old else item for item in str(statement.attrs["at"]).split(";"))
        for block in statement.blocks:
            block.gives = [name_of(name) for name in block.gives]
