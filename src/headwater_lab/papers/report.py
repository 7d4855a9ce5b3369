"""The report on disk: one HTML page with its pictures beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from headwater.cli.render.html import html_page
from headwater_lab.papers.advice import AdviceExperiments
from headwater_lab.papers.advice_section import advice_gaps, advice_pictures
from headwater_lab.papers.kinds_section import kinds_gaps, kinds_pictures
from headwater_lab.papers.pictures import Picture
from headwater_lab.papers.space_and_rows import Crossing, KindEntry, crossings, entries

PAGE = "index.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class PapersReport:
    """What was found, and the files it was written to: the page first."""

    advice: AdviceExperiments
    kinds: tuple[KindEntry, ...]
    crossings: tuple[Crossing, ...]
    files: tuple[Path, ...]


def write_papers(
    advice: AdviceExperiments, folder: Path, draw: Callable[[Iterable[Picture], Path], tuple[Path, ...]]
) -> PapersReport:
    """Write the page and its pictures into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = draw((*advice_pictures(advice).values(), *kinds_pictures().values()), folder)
    page = folder / PAGE
    page.write_text(page_of(advice), encoding="utf-8")
    return PapersReport(advice=advice, kinds=entries(), crossings=crossings(), files=(page, *pictures))


def page_of(advice: AdviceExperiments) -> str:
    """Return the HTML page: the text that ships, its gaps filled."""
    text = (files("headwater_lab.papers") / "report.html").read_text(encoding="utf-8")
    body = Template(text).substitute({**advice_gaps(advice), **kinds_gaps()})
    return html_page("Headwater lab: papers 004 and 002", [body])
