"""`windrow bench`: a door to the benchmarks, in a checkout; elsewhere a way to them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from windrow.cli.main import checkout, main

ROOT = Path(__file__).parents[2]


def test_the_door_passes_everything_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bench", "overlap", "--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert "Usage: windrow bench overlap" in told
    assert "--quick" in told


def test_an_unknown_benchmark_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bench", "never"])
    assert left.value.code == 2
    assert "never" in capsys.readouterr().err


def test_elsewhere_one_error_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("windrow.cli.main.__file__", str(tmp_path / "lib" / "windrow" / "cli" / "main.py"))
    with pytest.raises(SystemExit) as left:
        main(["bench", "overlap", "--quick"])
    assert left.value.code == 3
    told = capsys.readouterr().err
    assert told.startswith("error[no-benchmarks]: ")
    assert "clone Windrow's repository" in told


def test_a_checkout_is_known_by_its_benchmarks(tmp_path: Path) -> None:
    assert checkout(tmp_path, ROOT) == ROOT
    (tmp_path / "benchmarks").mkdir()
    assert checkout(tmp_path) is None


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        tops = {name.partition("/")[0] for name in packed.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"windrow"}
