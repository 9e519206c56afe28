# A constant -1 to a negative integer power is folded to 0.
# Class A, constant against parameter; ordinary values. Wrong in jaxlib 0.10.2 (2026-11-24).
# By hand: (-1)**-3 = 1 / (-1)**3 = -1, an integer, as it is for parameters.
import jax
import numpy as np
from jaxlib import xla_client

TEXT = """func.func public @main() -> tensor<i32> {
  %x = stablehlo.constant dense<-1> : tensor<i32>
  %y = stablehlo.constant dense<-3> : tensor<i32>
  %z = stablehlo.power %x, %y : tensor<i32>
  return %z : tensor<i32>
}"""
device = jax.devices("cpu")[0]
options, devices = xla_client.CompileOptions(), xla_client.DeviceList((device,))
program = device.client.compile_and_load(TEXT.encode(), devices, options)
got = np.asarray(program.execute([])[0])
print(got)
raise SystemExit(int(got != -1))
