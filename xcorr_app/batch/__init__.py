"""What each command does to a stack: one folder a command, whose `run` is the entry."""
