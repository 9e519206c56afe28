# The ones of a negative constant int4 are counted in 8 bits.
# Class B: StableHLO's popcnt counts "the number of bits set"; ordinary values. Wrong in jaxlib
# 0.10.2 (2026-11-24).
# By hand: -1 is 1111 in 4 bits: 4 bits are set.
import jax
import numpy as np
from jaxlib import xla_client

TEXT = """func.func public @main() -> tensor<i8> {
  %x = stablehlo.constant dense<-1> : tensor<i4>
  %y = stablehlo.popcnt %x : tensor<i4>
  %z = stablehlo.convert %y : (tensor<i4>) -> tensor<i8>
  return %z : tensor<i8>
}"""
device = jax.devices("cpu")[0]
options, devices = xla_client.CompileOptions(), xla_client.DeviceList((device,))
program = device.client.compile_and_load(TEXT.encode(), devices, options)
got = np.asarray(program.execute([])[0])
print(got)
raise SystemExit(int(got != 4))
