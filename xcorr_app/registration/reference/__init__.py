"""What frames are compared with, and the passes over a stack that each reference takes."""
