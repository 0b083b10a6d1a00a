"""What single chapters use, beside their drawings and studies."""
