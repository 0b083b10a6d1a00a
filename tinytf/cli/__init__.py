"""The commands: `python -m tinytf translate`, `train`, `pretrain` and `write`."""
