"""One table of a TOML file that knows where it stands, so that what is wrong in it can be pointed at.

`tomllib` gives no line numbers. They are found by reading the text again when something is wrong: the key's line in the
section that declares it, or the section's own line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import InvalidProject, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlTable:
    """A table of a TOML file: its values, and the path of keys that leads to it."""

    file: Path
    text: str
    path: tuple[str, ...]
    values: Mapping[str, object]

    @property
    def title(self) -> str:
        """The table's header as the file writes it."""
        return f"[{'.'.join(_quoted(part) for part in self.path)}]" if self.path else "the top level"

    def allow(self, *keys: str) -> None:
        """Refuse every key but these, and say which one was probably meant."""
        for key in self.values:
            if key not in keys:
                raise InvalidProject(
                    f'unknown key "{key}" in {self.title} of {self.where(key)}',
                    code="HW-101",
                    detail=f"{self.title} knows {', '.join(keys)}",
                    hint=did_you_mean(key, keys, otherwise="remove it"),
                )

    def table(self, key: str) -> TomlTable:
        """Return the table under a key. One that is not there is empty."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.refusal(key, f"a table [{'.'.join((*self.path, key))}] belongs here, not {value!r}")
        return TomlTable(file=self.file, text=self.text, path=(*self.path, key), values=value)

    def tables(self) -> Iterator[tuple[str, TomlTable]]:
        """Yield every table under this one with its name, in the order of the file."""
        for key in self.values:
            yield key, self.table(key)

    def words(self, key: str, default: str | None = None) -> str:
        """Return the text under a key. Without a default it must be there."""
        value = self.values.get(key, default)
        if value is None:
            raise InvalidProject(
                f'{self.title} of {self.where()} has no "{key}"', code="HW-102", hint=f'add {key} = "…"'
            )
        if not isinstance(value, str):
            raise self.refusal(key, f'a text in quotes belongs here, not {value!r}; write {key} = "{value}"')
        return value

    def list_of_words(self, key: str) -> tuple[str, ...]:
        """Return the texts in the list under a key. It must be there."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.refusal(key, f'a list of texts belongs here; write {key} = ["…", "…"]')
        return tuple(str(one) for one in value)

    def number(self, key: str, default: int) -> int:
        """Return the whole number under a key."""
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.refusal(key, f"a whole number of at least 1 belongs here, not {value!r}")
        return value

    def truth(self, key: str, *, default: bool) -> bool:
        """Return the true or false under a key."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.refusal(key, f"true or false belongs here, not {value!r}")
        return value

    def refusal(self, key: str, detail: str, hint: str = "") -> InvalidProject:
        """Return the error that says why the value under a key cannot be meant. The caller raises it."""
        return InvalidProject(
            f'"{key}" in {self.title} of {self.where(key)} cannot be read', code="HW-103", detail=detail, hint=hint
        )

    def where(self, key: str | None = None) -> str:
        """Return the file's name, with the line of a key or of this table where it is found."""
        line = self._line(key)
        return self.file.name if line is None else f"{self.file.name}:{line}"

    def _line(self, key: str | None) -> int | None:
        own_line: int | None = None
        section: tuple[str, ...] = ()
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[+(.+?)\]+\s*(#.*)?$", line):
                section = _key_path(header[1])
                if own_line is None and section[: len(self.path)] == self.path:
                    own_line = number
                if key is not None and section == (*self.path, key):
                    return number
            pair = re.match(r"\s*([^=#]+?)\s*=", line)
            if pair and key is not None and section + _key_path(pair[1]) == (*self.path, key):
                return number
        return own_line


def read_toml(file: Path) -> TomlTable:
    """Return the whole of a TOML file as one table."""
    try:
        text = file.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
        return TomlTable(file=file, text=text, path=(), values=tomllib.loads(text))
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidProject(
            f'there is no project file "{file.name}" in "{file.parent}"',
            code="HW-105",
            detail="" if file.parent.is_dir() else f'"{file.parent}" is not a folder',
            hint="go to the project's folder, or make one with `headwater init NAME`",
        ) from None
    except OSError as error:
        raise unreadable(file, error) from None
    except UnicodeDecodeError as error:
        raise InvalidProject(f"{file.name} is not UTF-8 text", code="HW-107", detail=str(error)) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidProject(
            f"{file.name} is not TOML", code="HW-106", detail=str(error), hint="see https://toml.io for its rules"
        ) from None


def unreadable(file: Path, error: OSError) -> InvalidProject:
    """Return the refusal of a project's file that is there and cannot be read."""
    return InvalidProject(
        f'"{file}" cannot be read',
        code="HW-158",
        detail=error.strerror or str(error),
        hint="this account has to be allowed to read it, and a file has to be a plain one",
    )


def _key_path(text: str) -> tuple[str, ...]:
    return tuple(bare or quoted for quoted, bare in re.findall(r"""["']([^"']*)["']|([A-Za-z0-9_-]+)""", text))


def _quoted(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"'
