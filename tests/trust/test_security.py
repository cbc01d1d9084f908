"""A malicious file is refused; nothing in it is executed."""

import ast
import json
import pickle
import struct
import zipfile
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import numpy as np
import pytest

import same
from helpers import write_tu, zip_tu
from same import SAME
from same.config import read_config
from same.errors import DamagedError, InputError
from same.files import load_tensors
from same.graphs import GraphStore, as_store, load, open_store, save_store
from same.graphs.io.tu import read_tu
from same.saved import load_trained
from same.study.plan import Plan
from same.study.report import make_tables, write_report
from same.study.report.page import to_latex, to_markdown
from same.study.results import Results, Score, Study, make_run
from same.tuning.report import write_tuning_report
from same.tuning.search import Search, Tuning, read_search
from same.tuning.space import Parameter, Space
from trust.audit import judge
from trust.faults import CONFIG
from tuning.searches import make_trial

SOURCE = Path(same.__file__).parent
COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def evil(tmp_path):
    """A pickle that would create a file if anything unpickled it."""
    trap = tmp_path / "gotcha"
    content = pickle.dumps(Evil(trap))
    yield content
    assert not trap.exists()


def test_the_pickle_of_these_tests_works(tmp_path):
    pickle.loads(pickle.dumps(Evil(tmp_path / "gotcha")))  # noqa: S301
    assert (tmp_path / "gotcha").exists()


def test_the_source_has_no_way_to_execute_a_file():
    """No pickle, no eval, no YAML, no torch.load, no numpy files with objects, no shell."""
    forbidden = {"eval", "exec", "compile", "__import__"}
    methods = {("torch", "load"), ("np", "load"), ("os", "system"), ("os", "popen")}
    modules = {"pickle", "dill", "cloudpickle", "joblib", "yaml", "marshal", "shelve"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not modules & {name.split(".")[0] for name in names}, (path.name, names)
            if isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") not in forbidden, (path.name, node.lineno)
                owner = getattr(getattr(node.func, "value", None), "id", "")
                assert (owner, getattr(node.func, "attr", "")) not in methods, (path.name, node.lineno)
                assert not any(k.arg in ("shell", "allow_pickle") for k in node.keywords), (path.name, node.lineno)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "result.json"])
def test_a_pickle_in_a_run_is_refused(tmp_path, evil, name):
    (tmp_path / "run").mkdir()
    for each in ("config.json", "result.json"):
        (tmp_path / "run" / each).write_text(json.dumps(CONFIG.model_dump(mode="json")))
    (tmp_path / "run" / "model.safetensors").write_bytes(evil)
    (tmp_path / "run" / name).write_bytes(evil)
    for use in (load_trained, SAME.load):
        with pytest.raises(InputError):
            use(tmp_path / "run")


def test_a_pickle_in_any_other_file_is_refused(tmp_path, evil):
    for name in ("c.toml", "c.json", "c.yaml", "c.pkl"):
        (tmp_path / name).write_bytes(evil)
        with pytest.raises(InputError, match="cannot be read as"):
            read_config(tmp_path / name)
    for name in ("study.json", "tune.json"):
        (tmp_path / name).write_bytes(evil)
    with pytest.raises(DamagedError):
        Study.open(tmp_path)
    with pytest.raises(DamagedError):
        read_search(tmp_path)
    (tmp_path / "SET.zip").write_bytes(evil)
    with pytest.raises(InputError, match="not a complete zip file"):
        load(tmp_path / "SET.zip")
    folder = write_tu(tmp_path / "TOY")
    (folder / "TOY_node_attributes.txt").write_bytes(evil)
    with pytest.raises(InputError):
        load(folder)
    save_store(GraphStore.build("a", x=np.ones((2, 1)), sizes=[2], edge_index=[[0], [1]]), tmp_path / "store")
    for name in ("store.json", "x.bin"):
        (tmp_path / "store" / name).write_bytes(evil)
        with pytest.raises(InputError):
            open_store(tmp_path / "store")


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.system ['touch gotcha']", "a: &a [*a, *a]", "width: !!python/name:os.system"]
)
def test_yaml_is_not_read(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InputError, match="cannot be read as TOML"):
        read_config(tmp_path / "c.yaml")


def safetensors(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


HEADERS = {
    "longer than the file": safetensors(b"{}", length=2**40),
    "negative": safetensors(b"{}", length=2**64 - 1),
    "not JSON": safetensors(b"{" * 50),
    "deep": safetensors(b'{"a":' * 5000),
    "offsets beyond the end": safetensors(b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'),
    "a huge shape": safetensors(
        b'{"a":{"dtype":"F32","shape":[99999999999,99999999],"data_offsets":[0,4]}}', b"\0" * 4
    ),
    "an unknown type": safetensors(b'{"a":{"dtype":"PY","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
    "overlapping": safetensors(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b"\0" * 4,
    ),
    "state that is no JSON": safetensors(b'{"__metadata__":{"state":"__import__(\'os\')"}}'),
    "deep state": safetensors(json.dumps({"__metadata__": {"state": "[" * 100_000}}).encode()),
}


@pytest.mark.parametrize("name", HEADERS)
def test_forged_headers_of_safetensors_are_refused(tmp_path, name):
    (tmp_path / "model.safetensors").write_bytes(HEADERS[name])
    with pytest.raises(DamagedError) as error:
        load_tensors(tmp_path / "model.safetensors")
    assert "\n" not in str(error.value)


def test_archive_bombs_and_archives_of_archives_are_refused(tmp_path):
    bomb = tmp_path / "SET.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SET_A.txt", b"0" * 2**26)
    assert bomb.stat().st_size < 2**17
    with pytest.raises(InputError, match="unpacks to 67108864 bytes; refused"):
        read_tu(bomb)
    # One with a false size is noticed while it is read: no more than the claimed size is unpacked.
    path = zip_tu(write_tu(tmp_path / "toy"), tmp_path / "TOY.zip")
    blob = bytearray(path.read_bytes())
    entry = blob.rindex(b"PK\x01\x02")
    blob[entry + 24 : entry + 28] = struct.pack("<I", 3)
    path.write_bytes(blob)
    with pytest.raises(InputError):
        read_tu(path)
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        archive.writestr("SET_A.txt/", b"")
        archive.writestr("SET.zip", bomb.read_bytes())
    with pytest.raises(InputError, match="holds 0 TU sets"):
        read_tu(tmp_path / "many.zip")


def test_names_of_sets_cannot_be_addresses(tmp_path, monkeypatch):
    urls = []

    def not_found(url, **options):
        urls.append(url)
        raise HTTPError(url, 404, "not found", Message(), None)

    monkeypatch.setattr("urllib.request.urlopen", not_found)
    for name in ("http:x", "a?b", "a#b", "a%2f..", "a@b", "\\\\host", "a\0b", "~", "-rf"):
        with pytest.raises(InputError):
            load(name)
    assert all(url.startswith(f"{COLLECTION}/") and not set("?#%@\\") & set(url) for url in urls)


def test_objects_that_are_not_graphs_are_refused(tmp_path, evil):
    for graphs in (evil, [evil], object(), {"a": 1}):
        with pytest.raises(InputError):
            as_store(graphs)


EVIL = '<script>alert("x")</script>'
PAGE_SCRIPTS = 1  # The script of the page, which sorts tables.


def test_the_page_of_a_study_escapes_names_labels_settings_and_errors(tmp_path):
    plan = Plan(questions=("overview", "Q1", "Q4"), datasets=(EVIL,), splits=(0, 1), settings={"seed": 0})
    results, failed = Results(), {}
    for number, config in enumerate(plan.runs()):
        if number % 5 == 0:
            failed[config.key] = f"InputError: {EVIL}"
            continue
        scores = [
            Score(model, "test", task, probe, protocol, config.pair, EVIL, 0.5 + number / 1000)
            for model in (config.method, "raw", "majority", EVIL)
            for probe in ("linear", "network", "own", "none")
            for task in ("gc", "nc", "lp")
            for protocol in ("paper", "released")
        ]
        training = {"best": {"epoch": EVIL}, "examples": {EVIL: 1}, "cpu_seconds": 1.0}
        training |= dict.fromkeys(("epochs", "cap", "steps"), EVIL)
        run = make_run(config, training)
        settings = {**run.settings, "width": EVIL}
        results.add(run._replace(settings=settings, version=EVIL, commit=EVIL), scores)
    study = Study(tmp_path, plan, results, failed)
    page = write_report(study).read_text(encoding="utf-8")
    assert page.count("<script") == PAGE_SCRIPTS
    assert "&lt;script&gt;" in page
    for figure in (tmp_path / "figures").rglob("*.svg"):
        assert "<script" not in figure.read_text(encoding="utf-8")
    for table in make_tables(study):
        assert to_markdown(table)
        assert to_latex(table)
    # Nothing was written outside of these folders, whatever the name of a set.
    assert {path.parts[len(tmp_path.parts)] for path in tmp_path.rglob("*")} <= {
        "tables",
        "figures",
        "report.html",
        "report.md",
    }


def test_the_page_of_a_search_escapes_names_values_and_errors(tmp_path):
    space = Space((Parameter("encoder", choices=("gcn", "gin")), Parameter("layers", low=1, high=3)))
    search = Search(EVIL, "esame", ("gc",), space, sampler="random")
    values = [{"encoder": e, "layers": n} for e in ("gcn", "gin") for n in (1, 2, 3)] * 3
    states = ["done"] * 16 + ["failed", "stopped"]
    trials = [
        make_trial(i, v, 0.1 * (i % 7), state, EVIL) for i, (v, state) in enumerate(zip(values, states, strict=True))
    ]
    page = write_tuning_report(Tuning(tmp_path, search, tuple(trials))).read_text(encoding="utf-8")
    assert page.count("<script") == PAGE_SCRIPTS
    assert page.count("&lt;script&gt;") >= 2


def test_an_audit_that_checked_nothing_fails():
    safe = {"name": "a", "version": "1", "vulns": []}
    bad = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
    unknown = {"name": "c", "skip_reason": "Dependency not found on PyPI"}
    editable = {"name": "same-gnn", "skip_reason": "distribution marked as editable"}
    assert judge([safe, editable]) == (0, "audit: 1 distributions checked, 0 known vulnerabilities, 0 not checked")
    code, text = judge([safe, bad, unknown])
    assert code == 1
    assert text.splitlines()[:2] == ["b 2: PYSEC-1, fixed in 3", "could not be checked: c"]
    assert judge([unknown, editable])[0] == 2
