"""``zenwire completion``: what a shell needs to complete the command, made of the parser itself."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUMMARY = "print a completion script for a shell"
EXAMPLES: tuple[str, ...] = (
    "zenwire completion bash > ~/.local/share/bash-completion/completions/zenwire",
    "zenwire completion zsh > ~/.zfunc/_zenwire",
    "zenwire completion fish > ~/.config/fish/completions/zenwire.fish",
)
_SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = re.compile(r"FILE|CAPTURE|DIR|HTML")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=_SHELLS, help="which shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from zenwire.cli.main import COMMANDS, parser_of  # noqa: PLC0415 - it is what loads this file

    commands = dict(_commands(parser_of(COMMANDS)))
    write: dict[str, Callable[[dict[str, _Command]], str]]
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    print(write[args.shell](commands), end="")
    return 0


class _Option(NamedTuple):
    flags: tuple[str, ...]
    text: str
    takes: bool
    choices: tuple[str, ...]
    is_file: bool


class _Command(NamedTuple):
    text: str
    options: list[_Option]
    choices: tuple[str, ...]
    """Of what stands without a flag."""


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, _Command]]:
    """What argparse knows; it has no other way to say it than its private lists."""
    for action in parser._actions:  # noqa: SLF001
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            continue
        texts = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
        for name, made in action.choices.items():
            actions = [one for one in made._actions if one.help is not argparse.SUPPRESS]  # noqa: SLF001
            options = [_option(one) for one in actions if one.option_strings]
            bare = [str(c) for one in actions if not one.option_strings for c in one.choices or ()]
            yield name, _Command(texts.get(name, ""), options, tuple(bare))


def _option(action: argparse.Action) -> _Option:
    takes = action.nargs != 0
    choices = tuple(map(str, action.choices or ()))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    text = " ".join((action.help or "").split()).replace("%%", "%")
    is_file = takes and not choices and bool(_FILES.search(metavar))
    return _Option(tuple(action.option_strings), text, takes, choices, is_file)


def _bash(commands: dict[str, _Command]) -> str:
    cases = []
    for name, command in commands.items():
        flags = " ".join(flag for one in command.options for flag in one.flags)
        values = []
        for one in command.options:
            if not one.takes:
                continue
            words = f'-W "{" ".join(one.choices)}"' if one.choices else "-f" if one.is_file else ""
            reply = f'COMPREPLY=($(compgen {words} -- "$cur"))' if words else "COMPREPLY=()"
            values.append(f"        {'|'.join(one.flags)}) {reply}; return ;;")
        bare = f'-W "{" ".join(command.choices)}"' if command.choices else "-f"
        cases += [
            f"    {name})",
            '      case "$prev" in',
            *values,
            "      esac",
            f'      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "{flags}" -- "$cur"))',
            f'      else COMPREPLY=($(compgen {bare} -- "$cur")); fi ;;',
        ]
    return "\n".join(
        [
            "# bash completion of zenwire",
            "_zenwire() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"',
            "  if [[ $COMP_CWORD -eq 1 ]]; then",
            f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$cur"))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            "}",
            "complete -o filenames -F _zenwire zenwire",
            "",
        ]
    )


def _zsh(commands: dict[str, _Command]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'"

    def plain(text: str) -> str:
        return re.sub(r"([\[\]:\\])", r"\\\1", text)

    lines = [
        "#compdef zenwire",
        "_zenwire() {",
        "  if (( CURRENT == 2 )); then",
        "    local -a names",
    ]
    names = " ".join(quoted(f"{name}:{one.text}") for name, one in commands.items())
    lines += [f"    names=({names})", "    _describe command names", "    return", "  fi"]
    lines += ["  local name=$words[2]", "  (( CURRENT-- )); shift words", "  case $name in"]
    for name, command in commands.items():
        specs = []
        for one in command.options:
            value = ""
            if one.takes:
                value = f":value:({' '.join(one.choices)})" if one.choices else ":value: "
                value = ":file:_files" if one.is_file else value
            specs += [quoted(f"*{flag}[{plain(one.text)}]{value}") for flag in one.flags]
        rest = f"*:value:({' '.join(command.choices)})" if command.choices else "*:file:_files"
        specs.append(quoted(rest))
        lines.append(f"    {name}) _arguments {' '.join(specs)} ;;")
    lines += ["  esac", "}", '_zenwire "$@"', ""]
    return "\n".join(lines)


def _fish(commands: dict[str, _Command]) -> str:
    lines = ["# fish completion of zenwire", "complete -c zenwire -f"]
    for name, command in commands.items():
        text = shlex.quote(command.text)
        lines.append(f"complete -c zenwire -n __fish_use_subcommand -a {name} -d {text}")
        seen = shlex.quote(f"__fish_seen_subcommand_from {name}")
        if command.choices:
            lines.append(
                f"complete -c zenwire -n {seen} -a {shlex.quote(' '.join(command.choices))}"
            )
        for one in command.options:
            flags = " ".join(
                f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in one.flags
            )
            value = ""
            if one.takes:
                value = f" -x -a {shlex.quote(' '.join(one.choices))}" if one.choices else " -x"
                value = " -r -F" if one.is_file else value
            text = shlex.quote(one.text)
            lines.append(f"complete -c zenwire -n {seen} {flags}{value} -d {text}")
    return "\n".join([*lines, ""])
