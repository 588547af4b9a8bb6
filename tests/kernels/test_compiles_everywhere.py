"""Every instantiation that ships, compiled as at run time but without a device: no stack frame, no spills, anywhere.

The compiler is CUDA 13's, whose oldest architecture is sm_75 (that of CUDA 12 is sm_50). All of it takes some minutes
(``make compile-test``); otherwise one instantiation of each kernel, for one of the architectures.
"""

import pytest

from tests import share
from tests.kernels import nvrtc
from tests.kernels.launches import EVERYWHERE, OLDEST, OTHERS
from xcorr_app.gpu.runtime.compile import OF_ONE_ARCHITECTURE, compiler_options, kernel_root, kernel_source

pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="nvidia-cuda-nvrtc is not installed")


def chosen_architectures():
    """The oldest and the newest that the compiler knows, and data centres' in between."""
    known = nvrtc.architectures()
    assert {80, 90, 100} <= set(known)
    return sorted({known[0], 80, 90, 100, known[-1]})


def architectures_of(launch):
    """Those of the chosen ones that the kernel is for."""
    if launch.kernel in OF_ONE_ARCHITECTURE:
        return [OF_ONE_ARCHITECTURE[launch.kernel]]
    return [sm for sm in chosen_architectures() if sm >= OLDEST.get(launch.kernel, 0)]


def options(kernel, architecture):
    return (*compiler_options(kernel), f"-arch=sm_{architecture}")


def chosen_jobs():
    """Launches, each with an architecture: all of them, or one of each kernel."""
    if not share.everything():
        first = {launch.kernel: launch for launch in reversed(EVERYWHERE.values())}
        return [(launch, architectures_of(launch)[-1]) for launch in first.values()]
    chosen = [(launch, sm) for launch in EVERYWHERE.values() for sm in architectures_of(launch)]
    return [*chosen, *((launch, OF_ONE_ARCHITECTURE.get(launch.kernel, 90)) for launch in OTHERS.values())]


@pytest.mark.parametrize("kernel", sorted({launch.kernel for launch in EVERYWHERE.values()}))
def test_stays_in_registers(kernel):
    wrong = []
    for launch, sm in chosen_jobs():
        if launch.kernel == kernel:
            log = nvrtc.outside_registers(kernel_source(kernel, launch.defines), options(kernel, sm))
            wrong += [f"sm_{sm} {launch.defines}: {log}"] if log else []
    assert not wrong, "\n".join(wrong)


def test_a_spill_would_be_noticed():
    source = 'extern "C" __global__ void f(float* x) { float a[48]; LOOP a[i] = x[i]; LOOP x[i] += a[i * 7 % ODD]; }'
    source = source.replace("LOOP", "_Pragma(UNROLL) for (int i = 0; i < 48; ++i)").replace("UNROLL", '"unroll"')
    assert nvrtc.outside_registers(source.replace("ODD", "int(x[0])"), options("include/none", 90))
    assert not nvrtc.outside_registers(source.replace("7 % ODD", "1"), options("include/none", 90))


def test_every_kernel_is_compiled():
    files = {str(path.relative_to(kernel_root()).with_suffix("")) for path in kernel_root().rglob("*.cu")}
    assert files == {launch.kernel for launch in EVERYWHERE.values()}
