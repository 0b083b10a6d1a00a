"""The bug clinic: healthy programs, the silent bugs that are planted in them, and the ward."""
