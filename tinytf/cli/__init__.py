"""The commands: `python -m tinytf train`, `pretrain` and `write`."""
