import re
import sys

from same.study.engines.base import Event
from same.study.engines.overview import Overview


def show(overview):
    with overview:
        for event in (Event("start", "a"), Event("step", "a", (1, 9)), Event("done", "a"), Event("start", "b")):
            overview.show(event, f"run {event.key}")
        overview.show(Event("failed", "b", "ValueError: [no way]\n  in a file"), "run b")


def test_runs_are_plain_lines_where_there_is_no_terminal(capsys):
    show(Overview("runs", 4, 1, quiet=False))
    out, err = capsys.readouterr()
    assert out == ""
    assert re.sub(r"in \d+ s", "in 0 s", err).splitlines() == [
        "1 of 4 runs are done",
        "[2/4] run a done in 0 s",
        "[2/4] run b failed in 0 s: ValueError: [no way]",
    ]


def test_quiet_shows_nothing(capsys):
    show(Overview("runs", 4, 1, quiet=True))
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_bars_and_failures_above_them(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    overview = Overview("runs", 4, 1, quiet=False)
    show(overview)
    assert overview.progress.tasks[0].description == "all runs, 1 failed"
    assert overview.progress.tasks[0].completed == 2
    assert len(overview.progress.tasks) == 1
    err = capsys.readouterr().err
    assert "run b failed" in err
    assert "ValueError: [no way]" in err
    assert "run a done" not in err
