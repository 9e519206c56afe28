"""The device card: the choices that a backend makes where the spec leaves them open."""
