"""From what a user names to series of images: folders, names, numbers, contents."""
