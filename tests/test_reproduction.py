"""The reproduction of the papers: how experiments keep and judge their figures, and what the report says."""

import json

import pytest
from benchmarks import report, reproduce
from benchmarks.experiment import Experiment, Figure, Plot, Row, Table, show
from benchmarks.results import Results


@pytest.mark.parametrize(
    ("paper", "ours", "better", "verdict"),
    [
        (Figure(1.0, 0.1), Figure(0.8), "lower", "better"),
        (Figure(1.0, 0.1), Figure(1.09), "lower", "equal"),
        (Figure(1.0, 0.1), Figure(1.2), "lower", "worse"),
        (Figure(90.0, 1.0), Figure(92.0), "higher", "better"),
        (Figure(90.0, 1.0), Figure(88.0, 5.0), "higher", "worse"),
        (Figure(90.0), Figure(88.0, 5.0), "higher", "equal"),
        (Figure(10.0), Figure(20.0), None, "differs"),
        (None, Figure(20.0), "lower", ""),
        (Figure(10.0), None, "lower", "not run"),
    ],
)
def test_verdict_uses_the_spread_of_the_paper_or_else_ours(paper, ours, better, verdict):
    row = Row("cell", paper, ours)
    assert Table("figures", [row], better).verdict(row) == verdict


def test_results_resume_unless_settings_change(tmp_path):
    script = str(tmp_path / "table.py")
    calls = []

    def measure():
        calls.append(1)
        return {"error": 1.5}

    assert Results(script, seed=0).get("a", measure)["error"] == 1.5
    assert Results(script, seed=0).get("a", measure)["error"] == 1.5
    assert len(calls) == 1
    Results(script, seed=1).get("a", measure)
    assert len(calls) == 2
    kept = json.loads((tmp_path / "results" / "table.json").read_text())
    assert kept["settings"] == {"seed": 1}
    assert {"python", "numpy", "polyplane", "cores"} <= set(kept["environment"])


def test_a_failed_measurement_leaves_the_others(tmp_path):
    script = str(tmp_path / "table.py")
    Results(script).get("a", lambda: {"error": 1.0})
    with pytest.raises(ZeroDivisionError):
        Results(script).get("b", lambda: {"error": 1 / 0})
    assert list(Results(script).figures) == ["a"]


@pytest.fixture
def chapter(tmp_path):
    rows = [Row("a | <b>", Figure(2.0, 0.1), Figure(3.0), "measured <i>twice</i>"), Row("c", Figure(2.0), None)]
    experiment = Experiment(
        script=str(tmp_path / "papers" / "table.py"),
        title="Table 9",
        protocol="Five seeds.",
        measure=lambda results: None,
        tables=lambda figures: [Table("error, %", rows)],
        plots=lambda figures: [Plot("line", "A line.", lambda canvas: canvas.subplots().plot([1, 2]))],
    )
    return report.Chapter("A paper", "Someone. *A title.*", [report.section(experiment, quick=False)])


def test_report_is_complete_and_self_contained(chapter, tmp_path):
    text, page = tmp_path / "r.md", tmp_path / "r.html"
    report.write([chapter], "Reproduced", text, tmp_path / "images", page)
    assert "| a \\| <b> | 2.00 ± 0.10 | 3.00 | +1.00 | worse (1) |" in text.read_text()
    assert "(1) measured" in text.read_text()
    assert "| A paper | 0 | 0 | 1 | 0 | 1 |" in text.read_text()
    assert (tmp_path / "images" / "papers-line.png").read_bytes().startswith(b"\x89PNG")
    markup = page.read_text()
    assert "data:image/png;base64," in markup
    assert "<b>" not in markup
    assert "<i>" not in markup
    assert "http" not in markup.replace("https://", "").replace("http-equiv", "")


def test_plain_text_shows_verdicts(chapter):
    lines = show(chapter.sections[0].tables[0]).splitlines()
    assert lines[2].split() == ["a", "|", "<b>", "2.00", "+-", "0.10", "3.00", "worse"]


def test_unknown_paper_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["reproduce", "cmp"])
    with pytest.raises(SystemExit, match="2"):
        reproduce.main()
    assert "there is no paper 'cmp'; choose from cpm, gamm" in capsys.readouterr().err


def test_the_committed_report_says_what_the_results_say():
    chapters = reproduce.chapters(list(reproduce.PAPERS), quick=False)
    text = report.markdown(chapters, reproduce.TITLE, "images/reproduction")
    assert (reproduce.ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8") == text, "run make reproduce"
    for chapter in chapters:
        assert len(chapter.sections) >= 2
        for part in chapter.sections:
            for plot in part.plots:
                assert (reproduce.ROOT / "docs" / "images" / "reproduction" / f"{plot.name}.png").exists()


def test_whatever_is_worse_or_missing_is_explained():
    for chapter in reproduce.chapters(list(reproduce.PAPERS), quick=False):
        for part in chapter.sections:
            for table in part.tables:
                for row in table.rows:
                    if table.verdict(row) in ("worse", "not run"):
                        assert row.why or table.note, f"{part.experiment.title}: {row.label}"
