"""Relatives of the Transformer: what came before it, and what else is made of its parts."""
