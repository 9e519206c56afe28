"""Puts the fault that UOP_FAULT names into this process, as Python starts."""

import os

from faults_of_judge import FAULT, faults

from uop.conformance.mutants.run import install

install([faults()[os.environ[FAULT]].mutant])
