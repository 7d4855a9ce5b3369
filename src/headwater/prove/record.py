"""What runs of `prove` have found together: a file to which every trial adds, so that many runs make one certificate.

Several processes may add to one file at once. A pair of constructs is admissible unless it is refused by rule: views of
just these two were refused again and again, and no view with both was ever accepted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from headwater.errors import HeadwaterError
from headwater.prove.result import OWN_ERRORS, WrongState

PAIR_GOAL = 5
"""A pair of constructs is covered when this many accepted views have both."""
_RULE_TRIES = 6
"""A pair counts as refused by rule when this many views of these two constructs were refused."""
_FORMAT = 1
_COUNTERS = ("trials", "pairs", "refused_pairs", "refused_alone", "refused", "stopped")


@dataclass(slots=True, kw_only=True)
class Record:
    """What was counted. `add` returns the sum of two."""

    texts: set[str] = field(default_factory=set)
    """Short hashes of the distinct texts that were accepted."""
    trials: Counter[str] = field(default_factory=Counter)
    """How many trials were played, by seed."""
    state_count: int = 0
    spark_count: int = 0
    seconds: float = 0.0
    pairs: Counter[str] = field(default_factory=Counter)
    """In how many accepted texts a pair of constructs is."""
    refused_pairs: Counter[str] = field(default_factory=Counter)
    refused_alone: Counter[str] = field(default_factory=Counter)
    """How many views of just these two constructs were refused, by pair and code: `a + b: HW-217`."""
    refused: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """One text that was refused or stopped, and why, by code."""
    unjudged: list[str] = field(default_factory=list)
    """Texts that were maintained, and that no engine could run over whole relations, with what it said."""
    disagreed: list[str] = field(default_factory=list)
    """Texts for which DuckDB gives another state than the view and Spark, with the first difference."""
    wrong: list[WrongState] = field(default_factory=list)

    def accept(self, sql: str, constructs: Sequence[str], recorded: set[str]) -> None:
        """Count an accepted text, unless it is known."""
        name = text_name(sql)
        if name not in recorded and name not in self.texts:
            self.texts.add(name)
            self.pairs.update(pairs_of(constructs))

    def refuse(self, sql: str, constructs: Sequence[str], code: str, why: str) -> None:
        """Count a refused text."""
        self.refused[code] += 1
        self.examples.setdefault(code, f"{sql}\n-- {why}")
        self.refused_pairs.update(found := pairs_of(constructs))
        if len(found) == 1:
            self.refused_alone[f"{found[0]}: {code}"] += 1

    def add(self, other: Record) -> None:
        """Add what another run found."""
        self.texts |= other.texts
        self.state_count += other.state_count
        self.spark_count += other.spark_count
        self.seconds += other.seconds
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        self.examples = {**other.examples, **self.examples}
        self.unjudged += other.unjudged
        self.disagreed += other.disagreed
        self.wrong += other.wrong

    def ruled_out(self) -> dict[str, str]:
        """Return the pairs that are refused by rule, with the code."""
        found: dict[str, Counter[str]] = {}
        for stored, count in self.refused_alone.items():
            pair, code = stored.rsplit(": ", 1)
            if not self.pairs[pair] and code not in OWN_ERRORS:
                found.setdefault(pair, Counter())[code] += count
        return {
            pair: codes.most_common(1)[0][0] for pair, codes in sorted(found.items()) if codes.total() >= _RULE_TRIES
        }

    def text(self) -> str:
        """Return it as the text of a file."""
        stored = {one.name: getattr(self, one.name) for one in fields(self)}
        listed = {"texts": sorted(self.texts), "wrong": [asdict(one) for one in self.wrong]}
        return json.dumps({"format": _FORMAT, **stored, **listed})

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what a file tells."""
        stored: dict[str, Any] = json.loads(text)
        if stored.pop("format") != _FORMAT:
            raise ValueError("it is of another version of Headwater")
        stored.setdefault("examples", {})
        stored.setdefault("unjudged", [])
        stored.setdefault("disagreed", [])
        counters = {name: Counter(stored[name]) for name in _COUNTERS}
        wrong = [WrongState(**one) for one in stored["wrong"]]
        return cls(**{**stored, **counters, "texts": set(stored["texts"]), "wrong": wrong})


def read_record(file: Path | None) -> Record:
    """Return the counts of a file, or none if there is no file."""
    if file is None or not file.exists():
        return Record()
    try:
        return Record.read(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeadwaterError(
            f"{file} is not a record of proofs",
            code="HW-295",
            detail=str(error),
            hint="name a file that `headwater prove --record` has written, or one that does not exist yet",
        ) from None


def add_to_file(file: Path, found: Record) -> Record:
    """Add what was found to a file, and return all that it tells then."""
    with file.with_name(f"{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        together = read_record(file)
        together.add(found)
        written = file.with_name(f"{file.name}.new")
        written.write_text(together.text(), encoding="utf-8")
        written.replace(file)
    return together


def text_name(sql: str) -> str:
    """Return a short name of a text, the same in every run."""
    return hashlib.sha256(sql.encode()).hexdigest()[:16]


def pairs_of(constructs: Sequence[str]) -> list[str]:
    """Return the pairs of constructs.

    >>> pairs_of(["union", "limit", "union"])
    ['limit + union']
    """
    return [pair_name(*pair) for pair in combinations(sorted(set(constructs)), 2)]


def pair_name(one: str, other: str) -> str:
    """Return the name of a pair, the same in both orders."""
    return " + ".join(sorted((one, other)))
