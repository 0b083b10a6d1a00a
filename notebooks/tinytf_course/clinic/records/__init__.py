"""What is known of each patient, by the program it lives in."""
