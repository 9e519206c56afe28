#!/usr/bin/env bash
# Tests, judges and measures CUDA on a machine with a GPU, where nothing of this project is installed.
exec python3 "$(dirname "$0")/on_gpu.py" "$@"
