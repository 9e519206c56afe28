"""Compilers with one fault each: what the spec says, after one wrong step.

`uop conform faults:ShiftThereAndBack` judges one. To see how many faults the suite finds, write
such a module from the documents alone, and give it to `benchmarks/strangers.py`.
"""

from functools import partial

from uop import Op, UOp, evaluate, parse
from uop.conformance.backends.attempt import attempt
from uop.conformance.backends.interpreter import evaluate_whole, hello_of, in_order, is_sharded
from uop.conformance.protocol import Outputs
from uop.spec.graph import slots_of


class Fault:
    """The interpreter. A fault overrides `graph`, `inputs`, `outputs` or, for state, `start`."""

    WITNESS = ""
    """The text of a repro file that fails with the fault alone."""

    def __init__(self):
        self.start()

    def start(self):
        """Begin a process: a cache or a counter."""

    def graph(self, root):
        """Return the graph that runs instead of this one."""
        return root

    def inputs(self, root, batch):
        """Return the arrays, by slot, that the program reads instead of these."""
        return batch

    def outputs(self, root, batch, found):
        """Return the arrays that the program returns instead of these."""
        return found

    def hello(self):
        return hello_of(type(self).__name__)

    def run(self, programs):
        return [attempt(partial(self.one, p)) for p in programs]

    def one(self, program):
        root = parse(program.text)
        new = self.graph(root)
        run = evaluate_whole if is_sharded(new) else evaluate
        read = slots_of(new)
        batches = []
        for batch in program.batches:
            given = {n: x for n, x in self.inputs(root, batch).items() if n in read}
            batches.append(self.outputs(root, batch, in_order(run(new, given))))
        return Outputs(tuple(batches))


def rewritten(root, rule):
    """Rebuild a graph from its leaves: `rule` returns another node, or None to keep this one."""
    new = {}
    for u in root.toposort():
        same = UOp(u.op, *(new[s] for s in u.src), arg=u.arg)
        new[u] = rule(same) or same
    return new[root]


class ShiftThereAndBack(Fault):
    """(x >> n) << n becomes x: the bits that the shift drops come back."""

    WITNESS = """\
%0 = PARAM [] {slot=0, dtype=int32}
%1 = PARAM [] {slot=1, dtype=int32}
%2 = SHR %0, %1
%3 = SHL %2, %1
input 0 = 7
input 1 = 1
"""

    def graph(self, root):
        def rule(u):
            if u.op is Op.SHL and u.src[0].op is Op.SHR and u.src[0].src[1] is u.src[1]:
                return u.src[0].src[0]
            return None

        return rewritten(root, rule)
