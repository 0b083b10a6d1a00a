"""Training: the loop, checkpoints, several processes, losses, schedules, and objectives."""
