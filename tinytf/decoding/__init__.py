"""From scores to text: search, sampling, likelihood, and a fast decoder."""
