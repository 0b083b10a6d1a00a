"""The data: the phrasebook and its batches."""
