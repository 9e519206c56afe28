"""An adapter of a library: jax, op by op. In this folder: `uop conform eager_jax:EagerJax`."""

from uop.conformance.adapters import LibraryBackend, build, imported, values_of
from uop.conformance.adapters.array_api import ArrayBuilder
from uop.spec.dtype import VALUES


class EagerJax(LibraryBackend):
    name, distribution, builder, dtypes = "eager-jax", "jax", ArrayBuilder, frozenset(VALUES)

    def start(self):
        jax, self.numpy = imported("xla", "jax", "jax.numpy")
        jax.config.update("jax_enable_x64", True)
        return "CPU"

    def compiled(self, root):
        values = values_of(root)
        return lambda inputs: build(values, ArrayBuilder(self.numpy, inputs))
