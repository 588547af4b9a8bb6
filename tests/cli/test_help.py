"""Every command says what it does, explains every option and shows an example."""

import click
import pytest

from tests.batch.movies import xcorr
from xcorr_app import __version__
from xcorr_app.cli import COMMANDS as NAMES
from xcorr_app.cli import main

COMMANDS = [(), *((name,) for name in NAMES)]


def command_of(path):
    return main.get_command(click.Context(main), path[0]) if path else main


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_an_example_on_a_line_of_its_own(path):
    run = xcorr(*path, "--help")
    assert run.code == 0
    after = run.stdout.partition("Example")[2].splitlines()
    assert after[1].strip().startswith(" ".join(["xcorr", *path]))
    assert "\\b" not in run.stdout
    assert run.stdout == xcorr(*path, "-h").stdout


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_is_explained(path):
    command = command_of(path)
    assert len(command.get_short_help_str(200)) > 10
    for option in command.params:
        if isinstance(option, click.Option):
            assert len(option.help or "") > 10, option.name


@pytest.mark.parametrize("name", ["align", "correlate", "filter"])
def test_every_default_is_shown(name):
    for option in command_of((name,)).params:
        if isinstance(option, click.Option) and not option.is_flag:
            # Releases of click differ in how they say that there is no default.
            without = option.default in (None, click.Option(["--x"]).default)
            assert option.show_default or without, option.name


@pytest.mark.parametrize("name", ["align", "apply", "correlate", "field", "filter", "unmix"])
def test_help_fits_a_screen(name):
    context = click.Context(command_of((name,)), info_name=f"xcorr {name}", terminal_width=98)
    lines = context.get_help().splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    assert xcorr(name, "--help-all").stdout.count("\n  -") > xcorr(name, "--help").stdout.count("\n  -")


@pytest.mark.parametrize("name", NAMES)
def test_help_is_a_command_too(name):
    assert xcorr("help", name).stdout == xcorr(name, "--help").stdout


def test_help_of_everything():
    run = xcorr("help")
    assert run.stdout == xcorr("--help").stdout
    commands, _, kernels = run.stdout.partition("Correlation planes and kernels:")
    assert "  align " in commands
    assert "  env " in kernels
    assert xcorr("help", "algin").code == 2


def test_version():
    assert xcorr("--version").stdout == f"xcorr, version {__version__}\n"


def test_env_lists_device_versions_cache_and_engines():
    run = xcorr("env")
    assert run.code == 0
    for word in ("processor", "GPU", "kernel cache", "engine        fft on the CPU: runs", "numpy", "xcorr-app"):
        assert word in run.stdout, word
