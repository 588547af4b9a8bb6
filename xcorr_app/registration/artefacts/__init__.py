"""What is no scene: defects of a camera, lines, single hits, captions and borders, taken out for measuring."""
