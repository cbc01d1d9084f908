from study_helpers import same


def test_the_demo_shows_training_above_the_floors(tmp_path):
    code, out, err = same("demo", "--out", tmp_path / "demo")
    assert code == 0, err
    rows = {}
    for line in out.splitlines():
        cells = [c.strip() for c in line.split("│")[1:-1]]
        if len(cells) == 5:
            rows[cells[0], cells[1]] = [float(c.split()[0]) for c in cells[2:]]
    for method in ("iSAME", "eSAME", "Cl"):
        trained = rows[method, "linear probe"]
        for floor in (rows["majority", ""], rows["raw features", "linear probe"], rows["untrained", "linear probe"]):
            assert all(t > f for t, f in zip(trained, floor, strict=True)), (method, rows)
    assert (tmp_path / "demo" / "study" / "report.html").is_file()
    assert (tmp_path / "demo" / "study" / "figures" / "overview-planted.svg").is_file()
