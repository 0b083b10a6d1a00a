"""Whole programs in the style that circulates, each right: the healthy twins of the patients."""
