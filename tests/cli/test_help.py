"""Every command says what it does, explains every option and shows an example."""

import re

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


@pytest.mark.parametrize("name", ["align", "apply", "correlate", "field", "filter", "unmix"])
def test_help_shows_some_options_and_help_all_every_one_once(name):
    command = command_of((name,))
    shown = {each for names in command.groups.values() for each in names}
    options = {each.name: each for each in command.params if isinstance(each, click.Option) and not each.hidden}
    assert shown <= set(options)
    brief, whole = (_listed(xcorr(name, flag).stdout) for flag in ("--help", "--help-all"))
    flags = {key: option.opts[-1] for key, option in options.items()}
    assert sorted(brief) == sorted([flags[key] for key in shown] + ["--help-all", "--help"])
    assert sorted(whole) == sorted([*flags.values(), "--help-all", "--help"])


def test_the_help_of_align_shows_ten_options():
    assert sum(map(len, command_of(("align",)).groups.values())) == 10


def _listed(text):
    """The long names of options that a help lists, each as often as it does."""
    return re.findall(r"^  (?:-\w, )?(--[\w-]+)", text.partition("Example")[2], re.MULTILINE)


def test_defaults_and_values_are_shown_as_they_are_typed():
    text = xcorr("align", "--help-all").stdout
    wanted = (
        "first|last|mean|median|template|previous|rolling:N|pairs:K|INDEX|FILE",
        "all|none|N",
        "PX | PXY,PXX",
        "[default: zncc]",
    )
    for words in wanted:
        assert words in " ".join(text.split()), words


@pytest.mark.parametrize("name", ["align", "correlate", "filter"])
def test_every_default_is_shown(name):
    for option in command_of((name,)).params:
        if isinstance(option, click.Option) and not option.is_flag:
            # Releases of click differ in how they say that there is no default.
            without = option.default in (None, click.Option(["--x"]).default)
            assert option.show_default or without, option.name


def test_every_option_of_the_stated_usage_exists():
    known = {name for option in command_of(("align",)).params for name in [*option.opts, *option.secondary_opts]}
    usage = (
        "-o --reference --max-shift --normalization --subpixel --upsample --prefilter --roi --engine --device --verify "
        "--contrast --max-sigma --smooth-time "
        "--apply --no-apply --interpolation --border --layout --resume --overwrite --dry-run -q -v --debug --axis "
        "--align-channel --max-pixels"
    )
    assert set(usage.split()) <= known


def test_usage_of_correlate():
    text = " ".join(xcorr("correlate", "--help").stdout.split())
    assert "correlate [OPTIONS] LEFT RIGHT" in text
    for words in ("one-to-one|one-to-many|n-to-mn|n-to-m", "PX | PXY,PXX", "[default: the full plane]", "Exit code"):
        assert words in text, words
    known = {name for option in command_of(("correlate",)).params for name in [*option.opts, *option.secondary_opts]}
    usage = (
        "-o --form --max-shift --normalization --min-overlap --subpixel --channel --engine --device --verify "
        "--no-verify --tolerance --max-pixels --overwrite -q -v --debug"
    )
    assert set(usage.split()) <= known


def test_options_of_one_name_take_the_same_values():
    align, correlate = (
        {option.name: option for option in command_of((name,)).params} for name in ("align", "correlate")
    )
    # align verifies a number of frames, correlate every plane or none; only align has images to refine a shift on.
    assert align["subpixel"].type.choices == (*correlate["subpixel"].type.choices, "icgn")
    common = set(align) & set(correlate) - {"verify", "subpixel"}
    assert {"max_shift", "normalization", "engine", "variant", "device", "tolerance"} <= common
    for name in common:
        ours, theirs = (
            (option.opts, option.type.to_info_dict(), option.default, option.required)
            for option in (align[name], correlate[name])
        )
        assert ours == theirs, name


def test_usage_of_filter():
    text = " ".join(xcorr("filter", "--help-all").stdout.split())
    assert "filter [OPTIONS] INPUT..." in text
    for words in ("SIGMA,AMOUNT", "reflect|constant|nearest|mirror|wrap", "same|float32", "auto|cpu|cuda", "Exit code"):
        assert words in text, words
    for words in ("auto|opencv|separable|fft|scipy|reuse", "gabor:ORIENTATIONS,SCALES", "uint32 is refused"):
        assert words in text, words
    known = {name for option in command_of(("filter",)).params for name in [*option.opts, *option.secondary_opts]}
    usage = (
        "-o --gaussian --box --sobel --laplacian --log --dog --unsharp --taps --bank --mode --cval --dtype --device "
        "--engine --overwrite --resume --layout --max-pixels -q -v --debug"
    )
    assert set(usage.split()) <= known


@pytest.mark.parametrize("name", ["align", "correlate"])
def test_every_engine_is_named(name):
    text = " ".join(xcorr(name, "--help-all").stdout.split())
    assert "[auto|fft|direct|tensor|definition]" in text
    assert "kernels that sum by definition (direct) or tensor cores (tensor)" in text


def test_version():
    assert xcorr("--version").stdout == f"xcorr, version {__version__}\n"


def test_an_engine_is_taken_by_its_old_name_too():
    choice = next(option.type for option in command_of(("align",)).params if option.name == "engine")
    assert choice.convert("warp-shuffle", None, None) == choice.convert("direct", None, None)
    assert "warp-shuffle" not in choice.choices


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    run = xcorr("completion", shell)
    assert run.code == 0
    assert f"_XCORR_COMPLETE={shell}_complete" in run.stdout


def test_unknown_command_and_option():
    assert xcorr("nonsense").code == 2
    assert xcorr("align", "--nonsense").code == 2
    assert xcorr("align").code == 2
    assert xcorr("correlate", "left.tif", "right.tif").code == 2
    assert xcorr("filter", "m.tif", "--box", "3").code == 2


def test_env_lists_device_versions_cache_and_engines():
    run = xcorr("env")
    assert run.code == 0
    for word in ("processor", "GPU", "kernel cache", "engine        fft on the CPU: runs", "numpy", "xcorr-app"):
        assert word in run.stdout, word


@pytest.mark.parametrize(("typed", "hint"), [("algin", "Did you mean align?"), ("zzz", "Choose from: align, apply,")])
def test_a_mistyped_command_is_told_what_there_is(typed, hint):
    run = xcorr(typed)
    assert run.code == 2
    assert hint in run.stderr
