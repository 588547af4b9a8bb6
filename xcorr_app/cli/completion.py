"""``xcorr completion``: completion of commands and options in a shell."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes xcorr's commands and options in a shell.

    \b
    Examples:
      xcorr completion bash > ~/.local/share/bash-completion/completions/xcorr
      xcorr completion zsh > ~/.zfunc/_xcorr      (a folder of $fpath)
      xcorr completion fish > ~/.config/fish/completions/xcorr.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this release of click knows no completion for {shell}")
    # The class for bash would start one to ask for its version; the script is the same.
    from xcorr_app.cli import main

    click.echo(ShellComplete.source(kind(main, {}, "xcorr", "_XCORR_COMPLETE")))
