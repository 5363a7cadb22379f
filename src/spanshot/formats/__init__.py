"""What people have on disk, to and from sentences."""
