"""The device card: what a backend does where the spec leaves a choice, as a profile too."""
