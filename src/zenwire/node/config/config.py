"""The configuration as programs make it: read, changed by path, asked by path."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

from zenwire.errors import ConfigError, ConfigProblem
from zenwire.node.config.effective import Effective, effective
from zenwire.node.config.json5 import parse_json5
from zenwire.node.config.kinds import (
    ANYTHING,
    Option,
    Problems,
    Refused,
    Section,
    nearest,
    options_of,
)
from zenwire.node.config.nodes import TEXT_MAX, Json, Node, from_plain, paths_of
from zenwire.node.config.tree import Settings
from zenwire.node.config.yaml import parse_yaml

__all__ = ["Config"]

_HIDDEN: Final = "***"


class _Said:
    """Settings, and what they mean as soon as somebody asks: once for a Config and its copies.

    ``written`` has the paths that were set, whether to the default or not.
    """

    __slots__ = ("meant", "settings", "written")

    def __init__(self, settings: Settings, written: Iterable[str] = ()) -> None:
        self.settings = settings
        self.written = frozenset(written)
        self.meant: Effective | None = None


_DEFAULT: Final = _Said(Settings())


class Config:
    """A configuration. ``settings`` is what it says now: a frozen tree of typed values.

    Paths are written with slashes: ``transport/link/tx/lease``. Everything that is wrong is told
    in one ConfigError, with line and column where there is a text.
    """

    __slots__ = ("_said",)

    DEFAULT_CONFIG_PATH_ENV: ClassVar[str] = "ZENOH_CONFIG"

    def __init__(self, settings: Settings | None = None) -> None:
        self._said = _DEFAULT if settings is None else _Said(settings)

    @property
    def settings(self) -> Settings:
        """What it says now."""
        return self._said.settings

    @property
    def effective(self) -> Effective:
        """What that means. Raises ConfigError for what this node cannot do."""
        said = self._said
        if said.meant is None:
            said.meant = effective(said.settings, said.written)
        return said.meant

    @classmethod
    def _of(cls, node: Node) -> Self:
        made = cls()
        made._said = _Said(_read_all(node), paths_of(node))
        return made

    @classmethod
    def from_json5(cls, json: str) -> Self:
        """From JSON5, of which JSON is a part."""
        return cls._of(parse_json5(json))

    @classmethod
    def from_yaml(cls, yaml: str) -> Self:
        """From YAML. Needs the extra ``yaml``."""
        return cls._of(_yaml_node(yaml))

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """From dicts and lists, as a program writes them."""
        return cls._of(from_plain(values))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """From a file named ``.json5``, ``.json``, ``.yaml`` or ``.yml``."""
        name = os.fspath(path)
        suffix = Path(name).suffix
        if suffix not in {".json5", ".json", ".yaml", ".yml"}:
            hint = "name it .json5, .json, .yaml or .yml"
            raise _error("", f"{suffix!r} does not say what format it has", hint, source=name)
        try:
            text = _text_of(name)
            parse = _yaml_node if suffix in {".yaml", ".yml"} else parse_json5
            return cls._of(parse(text))
        except ConfigError as e:
            raise ConfigError(e.problems, source=name) from None

    @classmethod
    def from_env(cls) -> Self:
        """From the file that the environment variable ZENOH_CONFIG names."""
        path = os.environ.get(cls.DEFAULT_CONFIG_PATH_ENV)
        if path is None:
            hint = "set it to the path of a configuration file"
            raise _error("", f"{cls.DEFAULT_CONFIG_PATH_ENV} is not set", hint)
        return cls.from_file(path)

    # A JSON5 text, or a value as `from_dict` takes it: eclipse-zenoh annotates both as Any.
    def insert_json5(self, key: str, value: Any) -> None:
        """Set what a path says. A section is set as a whole: what is left out is the default.

        Below ``plugins`` every path is allowed, and makes what it needs on its way.
        """
        node = parse_json5(value) if isinstance(value, str) else from_plain(value)
        names = _names(key)
        if len(names) > 1 and names[0] == "plugins":
            plugins = _merged(self.settings.plugins, names[1:], _plain_of(node, key), key)
            node, names = from_plain(plugins), names[:1]
        settings = _set(self.settings, names, node, key)
        path = "/".join(names)
        self._said = _Said(settings, {*self._said.written, path, *paths_of(node, path)})

    def get_json(self, key: str) -> str:
        """What a path says, as JSON."""
        names = _names(key)
        value, known = _find(self.settings, names, key)
        return _dump(known.kind.plain(value)) if known else _dump(cast(Json, value))

    def copy(self) -> Config:
        """One that can be changed alone. The settings are shared, they never change."""
        copied = Config()
        copied._said = self._said
        return copied

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self.settings == other.settings

    __hash__ = None  # type: ignore[assignment] # it can change

    def __str__(self) -> str:
        """All of it as JSON, in the order of names. A password is not shown."""
        plain = cast("dict[str, Any]", Section(Settings).plain(self.settings))
        usrpwd = plain["transport"]["auth"]["usrpwd"]
        if usrpwd["password"] is not None:
            usrpwd["password"] = _HIDDEN
        pubkey = plain["transport"]["auth"]["pubkey"]
        if pubkey["private_key_pem"] is not None:
            pubkey["private_key_pem"] = _HIDDEN
        return _dump(plain, sort_keys=True)

    def __repr__(self) -> str:
        return f"Config.from_json5({str(self)!r})"


def _dump(value: Json, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def _error(path: str, reason: str, hint: str = "", source: str = "") -> ConfigError:
    return ConfigError((ConfigProblem(path, reason, hint),), source)


def _text_of(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            # UTF-8 has at most four bytes for each character.
            raw = file.read(4 * TEXT_MAX + 1)
        text = raw.decode()
    except OSError as e:
        raise _error("", e.strerror or str(e)) from None
    except UnicodeDecodeError as e:
        raise _error("", f"not UTF-8 at byte {e.start}") from None
    if not text.strip():
        raise _error("", "the file is empty", "write {} for the defaults")
    return text


def _yaml_node(text: str) -> Node:
    node = parse_yaml(text)
    # A text of nothing but comments is null in YAML; it sets nothing.
    return Node(entries=()) if node.kind == "null" else node


def _read_all(node: Node) -> Settings:
    problems = Problems()
    try:
        return Section(Settings).read(node, "", problems)
    except Refused:
        raise ConfigError(_located(problems)) from None


def _located(problems: Problems) -> tuple[ConfigProblem, ...]:
    """With a better hint for a known setting in a wrong place, in the order of the text."""
    found = []
    for problem in problems.found:
        name = problem.path.rpartition("/")[2]
        places = [path for path in _PATHS if path.rpartition("/")[2] == name]
        if problem.reason == "no such setting" and 0 < len(places) <= 3:
            hint = f"did you mean {' or '.join(places)}?"
            problem = dataclasses.replace(problem, hint=hint)  # noqa: PLW2901 # the same one, better
        found.append(problem)
    return tuple(sorted(found, key=lambda problem: (problem.line, problem.column)))


def _paths(cls: type[Any], path: str = "") -> list[str]:
    """The paths of all settings."""
    found = []
    for name, known in options_of(cls).items():
        here = f"{path}/{name}" if path else name
        found.append(here)
        if known.addressed:
            found += _paths(cast("Section[Any]", known.kind).type, here)
    return found


_PATHS: Final = _paths(Settings)


def _names(key: str) -> list[str]:
    return [name for name in key.split("/") if name]


def _option(section: Any, name: str, key: str) -> Option:
    options = options_of(type(section))
    if name not in options:
        places = [path for path in _PATHS if path.rpartition("/")[2] == name]
        hint = f"did you mean {' or '.join(places)}?" if places else nearest(name, options)
        raise _error(key, f"no setting {name!r} here", hint)
    return options[name]


def _find(settings: Settings, names: list[str], key: str) -> tuple[object, Option | None]:
    """The value at a path; and its option, unless it is inside of a plugin's."""
    if not names:
        raise _error(key, "an empty path", "str() of the configuration is all of it")
    section: Any = settings
    for at, name in enumerate(names):
        known = _option(section, name, key)
        value = getattr(section, name)
        rest = names[at + 1 :]
        if not rest:
            return value, known
        if names[0] == "plugins":
            return _inside(known.kind.plain(value), rest, key), None
        if not known.addressed:
            raise _error(key, f"a path ends at {'/'.join(names[: at + 1])!r}")
        section = value
    raise AssertionError("unreachable")


def _inside(value: Json, names: list[str], key: str) -> Json:
    for name in names:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise _error(key, f"there is no {name!r}")
    return value


def _set(section: Any, names: list[str], node: Node, key: str) -> Any:
    """The section with what the path says replaced. Sections are frozen: those above are copied."""
    if not names:
        raise _error(key, "an empty path", "name what to set, as in mode")
    name, rest = names[0], names[1:]
    known = _option(section, name, key)
    if rest:
        if not known.addressed:
            raise _error(key, f"a path ends at {name!r}", "set it as a whole")
        value = _set(getattr(section, name), rest, node, key)
    else:
        problems = Problems()
        try:
            value = known.kind.read(node, "/".join(_names(key)), problems)
        except Refused:
            raise ConfigError(_located(problems)) from None
    return dataclasses.replace(section, **{name: value})


def _plain_of(node: Node, key: str) -> Json:
    problems = Problems()
    try:
        return ANYTHING.read(node, key, problems)
    except Refused:
        raise ConfigError(_located(problems)) from None


def _merged(value: Json, names: list[str], new: Json, key: str) -> Json:
    """A JSON value with the place at a path replaced; what is missing on the way is made."""
    if not names:
        return new
    name, rest = names[0], names[1:]
    if value is None:
        value = [] if name in {"0", "+"} else {}
    if isinstance(value, dict):
        return {**value, name: _merged(value.get(name), rest, new, key)}
    if isinstance(value, list):
        at = len(value) if name == "+" else int(name) if name.isdecimal() else -1
        if 0 <= at < len(value) or (at == len(value) and name in {"0", "+"}):
            old = value[at] if at < len(value) else None
            return [*value[:at], _merged(old, rest, new, key), *value[at + 1 :]]
    raise _error(key, f"there is no {name!r}")
