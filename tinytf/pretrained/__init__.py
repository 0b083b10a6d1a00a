"""Published weights in Hugging Face's format, read and written."""
