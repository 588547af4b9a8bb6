"""Which pixels of a frame cannot be the scene, and what stands in for them while frames are measured."""
