"""The plug-in for napari; the package itself needs neither napari nor a screen."""
