"""Models one can talk to: translators and a writer."""
