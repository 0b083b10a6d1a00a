"""Text to ids and back: words, and byte-level BPE."""
