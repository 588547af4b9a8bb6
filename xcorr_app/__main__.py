"""``python -m xcorr_app``."""

from xcorr_app.cli import main

if __name__ == "__main__":
    main(prog_name="xcorr")
