"""What a benchmark has to say: tables to read, and a record to keep."""

import datetime
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tinytf_course.studies.interleaved import Spread, Timings

__all__ = ["Report", "between", "machine", "table", "write"]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Line up columns: names and notes to the left, numbers to the right.

    Columns without an entry are left out.
    """
    kept = [i for i in range(len(headers)) if any(row[i] for row in rows)]
    lines = [[line[i] for i in kept] for line in [headers, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = [i == 0 or head == "note" for i, head in enumerate(lines[0])]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in lines
    )


def between(value: Spread, digits: int) -> str:
    """Write a median and its quartiles."""
    return f"{value.median:.{digits}f} ({value.low:.{digits}f}-{value.high:.{digits}f})"


def machine(device: torch.device | str = "cpu") -> dict[str, Any]:
    """Say where and when something was measured."""
    device = torch.device(device)
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "device": gpu or device.type,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


class Report:
    """One benchmark's results, said as they come in (to `say`) and kept for the record."""

    def __init__(self, name: str, say: Callable[[str], None] = print) -> None:
        self.name, self.say = name, say
        self.rows: list[dict[str, Any]] = []
        self.values: dict[str, float] = {}
        self.aims: list[dict[str, Any]] = []

    def keep(
        self,
        title: str,
        timings: Timings,
        against: Sequence[str] = (),
        notes: Mapping[str, str] | None = None,
        *,
        per: float = 1.0,
        **columns: Mapping[str, object],
    ) -> None:
        """Put runs into the record; arguments as in `timings`."""
        for name, seconds in timings.seconds.items():
            ratios = {o: timings.ratio(o, name)._asdict() for o in against if o != name}
            row = {"table": title, "name": name, "seconds": seconds, "per": per, "over it": ratios}
            cells = {key: column[name] for key, column in columns.items() if name in column}
            self.rows.append(row | cells | {"note": (notes or {}).get(name, "")})

    def timings(
        self,
        title: str,
        timings: Timings,
        against: Sequence[str],
        notes: Mapping[str, str] | None = None,
        *,
        per: float = 1.0,
        **columns: Mapping[str, object],
    ) -> None:
        """Print a table of runs: those in `against` over each, then milliseconds, then the rest.

        A ratio below 1 says that the one in the heading is faster than the row's. Milliseconds are
        divided by `per` (tokens, say). Each of `columns` gives some rows an entry.
        """
        self.keep(title, timings, against, notes, per=per, **columns)
        headers = ["", *(f"{name} / it" for name in against), "ms", *columns, "note"]
        lines = [
            [
                name,
                *("" if o == name else between(timings.ratio(o, name), 3) for o in against),
                between(timings.of(name).scaled(1000 / per), 3 if per > 1 else 2),
                *(_cell(column.get(name, "")) for column in columns.values()),
                (notes or {}).get(name, ""),
            ]
            for name in timings.seconds
        ]
        self.table(title, headers, lines)

    def table(self, title: str, headers: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        """Print any table."""
        self.say(f"\n{title}\n{table(headers, lines)}")

    def value(self, what: str, value: float, unit: str = "", digits: int = 2) -> None:
        """Say one number."""
        self.values[f"{what} [{unit}]" if unit else what] = value
        self.say(f"{what}: {value:,.{digits}f} {unit}".rstrip())

    def aim(self, what: str, measured: float, aim: float, least: bool = False) -> None:
        """Say a number beside what is aimed at: at most `aim`, or with `least` at least that."""
        reached = measured >= aim if least else measured <= aim
        self.aims.append({"what": what, "measured": measured, "aim": aim, "reached": reached})
        sign = "at least" if least else "at most"
        verdict = "reached" if reached else "missed"
        self.say(f"aim: {what}: {measured:,.3f}, {sign} {aim:,.3g} is aimed at: {verdict}")

    def record(self, options: Mapping[str, Any], where: Mapping[str, Any]) -> dict[str, Any]:
        """Give all that was said, as JSON can hold it."""
        return {
            "benchmark": self.name, "machine": dict(where), "options": dict(options),
            "rows": self.rows, "values": self.values, "aims": self.aims,
        }  # fmt: skip


def write(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write records to a JSON file."""
    path.write_text(json.dumps(list(records), indent=1, default=str) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
