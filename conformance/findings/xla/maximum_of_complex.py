# The maximum of complex numbers with equal real parts is the first of them.
# Class B: StableHLO's maximum is the "lexicographic maximum for the (real, imaginary) pair";
# ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: 1 = 1, so the imaginary parts decide: 3 is above 2, and 1 + 3j is the maximum.
import jax
import numpy as np
from jaxlib import xla_client

TEXT = """func.func public @main() -> tensor<complex<f32>> {
  %x = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  %y = stablehlo.constant dense<(1.0, 3.0)> : tensor<complex<f32>>
  %z = stablehlo.maximum %x, %y : tensor<complex<f32>>
  return %z : tensor<complex<f32>>
}"""
device = jax.devices("cpu")[0]
options, devices = xla_client.CompileOptions(), xla_client.DeviceList((device,))
program = device.client.compile_and_load(TEXT.encode(), devices, options)
got = np.asarray(program.execute([])[0])
print(got)
raise SystemExit(int(got != 1 + 3j))
