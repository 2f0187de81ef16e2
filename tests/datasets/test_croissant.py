"""A data set in Croissant: mlcroissant finds no fault in it, and reads the numbers that we train on."""

import json

import mlcroissant
import numpy as np
import pytest

from svgpbench.cli.application import exit_code
from svgpbench_datasets import REGISTRY
from svgpbench_datasets.croissant import description_of, table_of


@pytest.mark.parametrize("name", ["boston:no-rad", "sonar", "thesis-sinusoid"])
def test_what_mlcroissant_reads_is_what_we_train_on(name, tmp_path) -> None:
    assert exit_code(["data", "croissant", name, "--out", str(tmp_path)]) == 0
    found = mlcroissant.Dataset(jsonld=tmp_path / "croissant.json")
    assert not found.metadata.issues.errors
    dataset = REGISTRY.load(name)
    rows = list(found.records("rows"))
    assert len(rows) == len(dataset.y)
    for column, feature in enumerate(dataset.feature_names):
        read = [row[f"rows/{feature}"] for row in rows]
        assert np.array_equal(read, dataset.X[:, column])
    target = [row[f"rows/{dataset.target_name}"] for row in rows]
    if dataset.class_labels is None:
        assert np.array_equal(target, dataset.y)
    else:
        labels = [one.decode() if isinstance(one, bytes) else one for one in target]
        assert labels == [dataset.class_labels[int(number)] for number in dataset.y]


def test_every_shipped_set_is_described() -> None:
    for name in ("airfoil", "boston", "ionosphere", "pima"):
        entry, dataset = REGISTRY.describe(name), REGISTRY.load(name)
        described = description_of(entry, dataset, b"")
        assert described["citeAs"] == entry.citation
        assert described["identifier"] == dataset.fingerprint
        fields = described["recordSet"][0]["field"]
        assert [field["name"] for field in fields] == list(table_of(dataset))


def test_a_name_that_there_is_not_is_one_line(capsys, tmp_path) -> None:
    assert exit_code(["data", "croissant", "bostn", "--out", str(tmp_path / "x")]) == 2
    assert "did you mean 'boston'" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_folder_that_is_a_file_is_one_line(capsys, tmp_path) -> None:
    (tmp_path / "file").write_text(json.dumps({}))
    assert exit_code(["data", "croissant", "sonar", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
