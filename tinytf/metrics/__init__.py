"""Measures: of translations, of texts, and of what a model costs."""
