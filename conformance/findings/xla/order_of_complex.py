# An ordered comparison of constant complex numbers ends the process while it compiles.
# Class B: StableHLO's compare is "lexicographic comparison of (real, imag) pairs"; ordinary
# values; crash. Wrong in jaxlib 0.10.2 (2026-11-24). Known: openxla/xla#44936.
# By hand: 1 + 2i is not below itself: false.
import os

import jax
from jaxlib import xla_client

TEXT = """func.func public @main() -> tensor<i1> {
  %x = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  %z = stablehlo.compare LT, %x, %x, FLOAT : (tensor<complex<f32>>, tensor<complex<f32>>)
    -> tensor<i1> return %z : tensor<i1> }"""
if os.fork():
    raise SystemExit(int(os.wait()[1] != 0))
device = jax.devices("cpu")[0]
options, devices = xla_client.CompileOptions(), xla_client.DeviceList((device,))
device.client.compile_and_load(TEXT.encode(), devices, options)
os._exit(0)
