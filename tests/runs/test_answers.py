"""What a cell gave reaches its record under the same names: from the worker's line to the file."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from fake_cells import make_config

from svgpbench.environment import describe
from svgpbench.experiments.identity import CellIdentity
from svgpbench.experiments.outcome import columns
from svgpbench.results.records import Record, WorkerFacts
from svgpbench.runs.protocol import Answer, Request
from svgpbench.runs.queue import PlannedCell
from svgpbench.runs.scheduler import make_record
from svgpbench.runs.slots import KEEPS_WORKER
from svgpbench.runs.worker import OUT_OF_MEMORY, answer_cell, located_error_line, ran_out_of_memory


def answered(do: str) -> Answer:
    return answer_cell(Request(config=make_config(do)).model_dump_json(), "fake_cells")


def test_an_answer_has_each_part_of_the_outcome() -> None:
    answer = answered("finish")
    assert (answer.status, answer.message, answer.traceback) == ("ok", "", "")
    assert answer.trace["elbo"] == [-0.1 - 0.2, -1 / 3]
    assert answer.metrics == {"nlpd": 0.1 + 0.2}
    assert answer.timing == {"steady_s": 0.25}
    assert answer.data["n_train"] == 9
    failed = answered("give_nan")
    assert (failed.status, failed.message) == ("diverged", "no longer finite")


def record_of(answer: Answer) -> Record:
    planned = PlannedCell(CellIdentity("the id", "of the data", make_config("finish", 5), 1))
    facts = WorkerFacts(fresh=False, cells_before=3)
    return make_record(planned, answer, facts, datetime(2024, 1, 2, tzinfo=UTC), 4.5)


def test_a_record_has_each_part_of_the_answer() -> None:
    answer = Answer(
        status="diverged",
        message="what went wrong",
        traceback="where",
        trace={"elbo": [1.0]},
        metrics={"nlpd": 2.0},
        data={"n_train": 3},
        timing={"train_s": 4.0},
        environment=describe(1),
        peak_memory_bytes=5,
    )
    record = record_of(answer)
    for name in type(answer).model_fields:
        if name not in ("data", "resumptions"):  # the latter is told of the worker
            assert getattr(record, name) == getattr(answer, name), name
    assert record.data == {"fingerprint": "of the data", "n_train": 3}
    assert (record.cell_id, record.config.seed) == ("the id", 5)
    assert (record.worker.fresh, record.worker.cells_before) == (False, 3)
    assert (record.started, record.wall_s) == (datetime(2024, 1, 2, tzinfo=UTC), 4.5)


def test_a_trace_column_has_a_value_a_row_whichever_rows_have_it() -> None:
    rows = [{"iteration": 1}, {"iteration": 2, "nlpd": 0.5}, {"elbo": -1.0, "iteration": 3}]
    assert columns(rows) == {
        "iteration": [1, 2, 3],
        "nlpd": [None, 0.5, None],
        "elbo": [None, None, -1.0],
    }


@pytest.mark.parametrize("words", OUT_OF_MEMORY)
def test_memory_that_ran_out_is_known_by_what_frameworks_say(words: str) -> None:
    assert ran_out_of_memory(RuntimeError(f"Error: {words.upper()} while computing"))


def test_other_errors_are_no_lack_of_memory() -> None:
    assert ran_out_of_memory(MemoryError())
    assert not ran_out_of_memory(RuntimeError("memory format is not contiguous"))


def test_the_name_of_an_error_may_say_it_too() -> None:
    class ResourceExhausted(Exception):  # noqa: N818 - as a framework calls it
        pass

    ResourceExhausted.__name__ = "RESOURCE_EXHAUSTED"
    assert ran_out_of_memory(ResourceExhausted("failed to allocate"))


TENSORFLOW = """Graph execution error:

Detected at node Cholesky defined at (most recent call last):
  File "a.py", line 3, in step

Cholesky decomposition was not successful. The input might not be valid.
\t [[{{node Cholesky}}]] [Op:__inference_step_1]"""
TORCH = """backend='inductor' raised:
RuntimeError: no compiler

Set TORCHDYNAMO_VERBOSE=1 for the stack trace"""


def test_a_first_line_that_ends_in_a_colon_is_followed_to_the_cause() -> None:
    cause = "Cholesky decomposition was not successful. The input might not be valid."
    assert located_error_line(ValueError(TENSORFLOW)) == f"ValueError: {cause}"
    assert located_error_line(ValueError(TORCH)) == "ValueError: RuntimeError: no compiler"
    assert located_error_line(ValueError("alone:")) == "ValueError: alone"


def test_one_line_is_the_type_and_the_first_line_and_not_long() -> None:
    assert located_error_line(ValueError("first\nsecond")) == "ValueError: first"
    assert located_error_line(ValueError("")) == "ValueError"
    assert located_error_line(ValueError("\n  first")) == "ValueError: first"
    assert len(located_error_line(ValueError("x" * 999))) == 300


def test_a_worker_is_kept_where_the_cell_left_the_process_sound() -> None:
    assert {"ok", "not_pd", "diverged", "skipped"} == KEEPS_WORKER


def test_a_plugin_that_changed_while_the_run_went_on_gives_no_number() -> None:
    planned = PlannedCell(
        CellIdentity("the id", "of the data", make_config("finish"), 1),
        {"method x": "acme:1", "backend numpy": "svgpbench:1"},
    )
    facts, now = WorkerFacts(fresh=True, cells_before=0), datetime(2024, 1, 2, tzinfo=UTC)
    for code, status in (("acme:1", "ok"), ("acme:2", "skipped")):
        environment = describe(1).model_copy(
            update={"code": {"method x": code, "backend numpy": "svgpbench:2"}}
        )
        answer = Answer(status="ok", metrics={"nlpd": 2.0}, environment=environment)
        record = make_record(planned, answer, facts, now, 1.0)
        assert (record.status, bool(record.metrics)) == (status, status == "ok")
    assert record.message == (
        "its worker found other code of method x of package acme than the run began with; run it again"
    )
