"""A fixed pattern of camera or illumination, told from the scene that moves over it."""
