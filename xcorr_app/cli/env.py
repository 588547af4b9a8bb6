"""``xcorr env``: what this installation runs on."""

import importlib
import sys
from functools import partial
from typing import TextIO, cast

import click


@click.command("env")
def command() -> None:
    """Print device, driver, versions, cache folder, and which engines can run.

    \b
    Example:
      xcorr env
    """
    import numpy as np

    from xcorr_app.cli.process import LastingOutput
    from xcorr_app.correlation.engines import ENGINES
    from xcorr_app.gpu.runtime.device import cuda_status
    from xcorr_app.gpu.runtime.kernel_cache import cache_folder
    from xcorr_app.pipeline.stages import processor, versions

    # Who reads may have seen enough, as `head` has.
    say = partial(click.echo, file=cast("TextIO", LastingOutput(sys.stdout)))
    status = cuda_status()
    say(f"processor     {processor()}")
    if status.available:
        say(f"GPU           {status.name}, compute capability {status.compute_capability}")
        say(f"              {status.memory / 2**30:.0f} GiB, {status.multiprocessors} multiprocessors")
        say(f"CUDA          driver {status.driver}, runtime {status.runtime}")
    else:
        say(f"GPU           none: {status.reason}")
    say(f"kernel cache  {cache_folder()}")
    places = {"CPU": np} | ({"GPU": importlib.import_module("cupy")} if status.available else {})
    for place, xp in places.items():
        for name, engine in ENGINES.items():
            reason = engine.unavailable(xp)
            say(f"engine        {name} on the {place}: {'runs' if reason is None else reason}")
    for name, version in versions().items():
        say(f"{name:<23} {version}")
