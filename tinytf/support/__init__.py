"""What every room stands on: devices, random states, files, interrupts, protocols, modes."""
