"""Which ops and attributes programs must have, and which they had."""

import subprocess

from program_text import walk

# Attributes with the kinds of values that must all come up: of a list, each of its items counts.
MUST = {
    "slice.step": {"negative", "1", "more"}, "slice.begin": {"0", "1", "more"}, "slice.size": {"1", "more"},
    "update.step": {"negative", "1", "more"}, "update.begin": {"0", "1"}, "update.size": {"1", "more"},
    "pad.low": {"0", "1", "more"}, "pad.high": {"0", "1", "more"}, "pad.inside": {"0", "1"},
    "pad.value": {"negative", "0", "1.5"}, "pad.whole_value": {"0", "1"}, "transpose.order": {"0", "1", "more"},
    "concat.axis": {"0", "1"}, "gather.axis": {"0", "1"}, "softmax.axis": {"0", "1"}, "log_softmax.axis": {"0", "1"},
    "take_along_axis.axis": {"0", "1"}, "take_along_axis.from_end": {"0", "1"}, "scatter_add.axis": {"0", "1"},
    "scatter_add.along": {"0", "1"}, "cumsum.axis": {"0", "1"}, "cumsum.reverse": {"0", "1"},
    "sort.axis": {"0", "1"}, "sort.descending": {"0", "1"}, "top_k.axis": {"0", "1"}, "top_k.k": {"0", "1", "more"},
    "conv2d.stride": {"1", "more"}, "conv2d.pad_low": {"negative", "0", "1"}, "conv2d.pad_high": {"negative", "0", "1"},
    "conv2d.dilation": {"1", "more"}, "conv2d.groups": {"1", "more"}, "conv2d.spread": {"1", "more"}, "matmul.transpose_a": {"0", "1"},
    "matmul.transpose_b": {"0", "1"}, "scan.reverse": {"0", "1"},
    "cast.dtype": {"f16", "bf16", "f32", "f64", "i32", "i64", "u8", "bool", "float"},
    "td_conv2d.same": {"0", "1"}, "td_conv2d.nchw": {"0", "1"}, "max_pool.same": {"0", "1"}, "max_pool.nchw": {"0", "1"},
    "avg_pool.same": {"0", "1"}, "avg_pool.nchw": {"0", "1"}, "attention.causal": {"0", "1"},
    "tril.diagonal": {"negative", "0", "1"}, "triu.diagonal": {"negative", "0", "1"},
    "scan.save": {"all", "every:1", "every:2", "slots:1", "slots:2", "bytes:1", "bytes:1500", "bytes:4000", "bytes:100000"},
    "fori_loop.save": {"all", "every:1", "every:2", "slots:1", "slots:2", "bytes:1", "bytes:1500", "bytes:4000", "bytes:100000"},
    "array_loop.push": {"0", "1"}, "array_loop.read": {"0", "1"},
    "map_fn.chunk": {"1", "more"}, "map_fn.parallel_iterations": {"1", "more"},
} | {f"{op}.keepdims": {"0", "1"} for op in ("sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "mean",
                                            "var", "logsumexp", "norm")}
# Draws by rejection: tests of their distributions judge them.
NOT_GENERATED = {"random_by_element"}
# Where a call says the same as the catalogue's attribute in other words.
SAID_AS = {"arange.shape": "stop", "arange.whole": "start", "arange.whole_start": "start", "arange.whole_step": "step",
           "random_bernoulli.dtype": "shape", "random_bernoulli.b": "a", "random_permutation.shape": "n",
           "random_permutation.dtype": "n", "random_permutation.a": "n", "random_permutation.b": "n"}


def wanted(seed):
    """The ops that a seed's program must try to have: all come up in turn."""
    from generate_ops import OPS
    names = sorted(OPS)
    number = seed - seed // 4  # Of the seeds that want something, so that none is left out for ever.
    return [names[(number * 2 + i) % len(names)] for i in range(2)] if seed % 4 else []


def kinds(value):
    for item in str(value).split(","):
        try:
            number = float(item)
        except ValueError:
            yield item
            continue
        yield "negative" if number < 0 else item if number in (0, 1, 1.5) else "more"
        if number in (0.0, 1.0):
            yield str(int(number))


def count(program, seen):
    for statement in walk(program.body):
        seen[statement.op] += 1
        if statement.op.startswith("random_") and statement.operands:
            seen["random_fold"] += 1
        for name, value in statement.attrs.items():
            seen[f"{statement.op}.{name}"] += 1
            for kind in kinds(value):
                seen[f"{statement.op}.{name}={kind}"] += 1
        for name in ("transpose_a", "transpose_b") if statement.op == "matmul" else ():
            if name not in statement.attrs:
                seen[f"matmul.{name}=0"] += 1
    for argument in program.arguments:
        seen["layout." + argument.layout.split(":")[0].split("+")[0]] += 1
    for mode in program.modes:
        seen["mode." + mode] += 1


def report(driver, seen, demand, demand_kinds):
    """Prints what was covered; whether something is missing that must not be."""
    from generate_ops import OPS
    lines = [line.split() for line in subprocess.run([driver, "--ops"], check=True, capture_output=True, text=True).stdout.splitlines()]
    lines = [words for words in lines if words[0] not in NOT_GENERATED]
    ops = [words[0] for words in lines]
    attributes = [f"{words[0]}.{attr}" for words in lines for attr in words[1:]]
    without = [op for op in ops if not seen[op]]
    unsaid = [a for a in attributes if not seen[a] and not seen[a.split(".")[0] + "." + SAID_AS.get(a, "?")]]
    others = [op for op in OPS if op not in ops]
    lacking = [f"{name}={kind}" for name, all_kinds in sorted(MUST.items()) for kind in sorted(all_kinds) if not seen[f"{name}={kind}"]]
    demanded = sum(len(k) for k in MUST.values())
    print(f"ops of the catalogue: {len(ops) - len(without)} of {len(ops)}; their attributes: {len(attributes) - len(unsaid)} of "
          f"{len(attributes)}; composites, Variables and control flow: {sum(1 for op in others if seen[op])} of {len(others)}; "
          f"kinds of values of attributes: {demanded - len(lacking)} of {demanded}")
    gone = without + unsaid + [op for op in others if not seen[op]]
    if demand_kinds:
        gone += lacking
    if gone and demand:
        print("never generated: " + ", ".join(gone))
    return bool(gone) and demand
