"""The exercises, a module per chapter. Each module lists its own in EXERCISES."""
