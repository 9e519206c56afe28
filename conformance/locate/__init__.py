"""Which stage of the compiler, and which firing of a rule, changes the meaning of a program."""
