"""StableHLO as tensor programs: each op of a module becomes Tensors."""

from uop.conformance.adapters.stablehlo.read import elementwise as elementwise
from uop.conformance.adapters.stablehlo.read import movement as movement
from uop.conformance.adapters.stablehlo.read.rules import from_stablehlo as from_stablehlo
