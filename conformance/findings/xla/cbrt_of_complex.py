# cbrt of a complex number is refused.
# Class B: StableHLO's cbrt takes a "tensor of floating-point or complex type"; ordinary values;
# crash. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: the cube root of 8 + 0j is 2.
import jax
from jaxlib import xla_client

TEXT = """func.func public @main(%x: tensor<complex<f32>>) -> tensor<complex<f32>> {
  %z = stablehlo.cbrt %x : tensor<complex<f32>>
  return %z : tensor<complex<f32>>
}"""
device = jax.devices("cpu")[0]
options, devices = xla_client.CompileOptions(), xla_client.DeviceList((device,))
try:
    program = device.client.compile_and_load(TEXT.encode(), devices, options)
except RuntimeError as error:
    print(str(error).splitlines()[0])
    raise SystemExit(1) from None
raise SystemExit(0)
