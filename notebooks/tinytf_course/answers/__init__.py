"""References, named mistakes and harmless mutants, a module a chapter; left out for students."""
