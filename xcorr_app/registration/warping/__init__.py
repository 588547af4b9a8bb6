"""Frames looked at through a motion or a displacement of every pixel: `warps` is what moving a stack asks."""
