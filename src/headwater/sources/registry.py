"""Which kinds of source there are, by the scheme of a source's URL.

Every kind is an entry point of the group `headwater.sources`, named by its scheme, in any distribution:

    [project.entry-points."headwater.sources"]
    postgresql = "headwater.sources.postgres:PostgresSource.connect"

A source that says how often it is polled (`poll = "60 s"`) is one that is polled, whatever its scheme.

The object it names takes `SourceSettings` and returns a `Source`, without connecting to anything. It is imported when a
project uses the scheme, and so is the driver of that database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias
from urllib.parse import urlsplit

from headwater.errors import HeadwaterError, InvalidProject
from headwater.sources.source import Source, SourceSettings

GROUP = "headwater.sources"
POLL = "poll"
"""The option that says how often a source is polled."""
ANY_DATABASE = "sqlalchemy"
"""What stands for the scheme of a source that is polled: a library that knows many databases finds out."""

Kind: TypeAlias = Callable[[SourceSettings], Source]


def known_schemes() -> tuple[str, ...]:
    """Return the schemes of URLs that name a source. Nothing is imported."""
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)} - {ANY_DATABASE}))


def connect(settings: SourceSettings) -> Source:
    """Return the source that a URL names, by its scheme. Nothing is connected yet."""
    entry = _entry(settings, settings.url())
    kind: Kind = _load(entry)
    is_polled = entry.name == ANY_DATABASE
    same_kind = {one.name for one in entry_points(group=GROUP) if one.value == entry.value}

    def url() -> str:
        found = settings.url()
        if _scheme(found) not in same_kind and not is_polled:
            raise _unknown(settings, "its scheme has changed since the source was connected")
        return found

    return kind(replace(settings, url=url))


def require_kind(settings: SourceSettings) -> None:
    """Refuse a source whose URL names no kind of source, or cannot be completed. Nothing is imported."""
    _entry(settings, settings.url())


def _entry(settings: SourceSettings, url: str) -> EntryPoint:
    scheme = _scheme(url)
    if scheme and POLL in settings.options:
        scheme = ANY_DATABASE
    found = {entry.value: entry for entry in entry_points(group=GROUP, name=scheme)}
    match list(found.values()):
        case [entry]:
            return entry
        case []:
            listed = ", ".join(f"{scheme}://" for scheme in known_schemes()) or "none: install headwater again"
            raise _unknown(settings, f"it has to begin with one of: {listed}")
        case several:
            listed = ", ".join(sorted(f"{one.value} ({one.dist.name if one.dist else '?'})" for one in several))
            raise InvalidProject(
                f'the url of source "{settings.name}" names more than one kind of source',
                code="HW-347",
                detail=f'the scheme "{several[0].name}" is claimed by {listed}',
                hint="uninstall all but one of these distributions",
            )


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # for instance brackets that are not closed: what is wrong with it must not be shown
        return ""


def _unknown(settings: SourceSettings, detail: str) -> InvalidProject:
    return InvalidProject(
        f'the url of source "{settings.name}" does not name a kind of source that can be used',
        code="HW-111",
        detail=f"{detail} ({settings.declared_in})" if settings.declared_in else detail,
        hint="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or install the distribution that knows the scheme",
    )


def _load(entry: EntryPoint) -> Kind:
    try:
        kind: Kind = entry.load()
    except HeadwaterError:
        raise
    except Exception as error:  # whatever another distribution does when it is imported
        raise InvalidProject(
            f'sources with {entry.name}:// cannot be used: "{entry.value}" does not load',
            code="HW-348",
            detail=f"{type(error).__name__}: {error}",
            hint="install what that kind of source needs, or ask its maintainer",
        ) from error
    return kind
