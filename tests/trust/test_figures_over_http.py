"""TRUST 50: a figure over HTTP is small, and who waits for one keeps nobody else waiting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.ledger import grant
from discreet.serve import answers
from serving import QUICK, body, folder_in_memory, served
from waiting import PATIENCE


@pytest.fixture
def site():
    with folder_in_memory() as folder, served(folder, limits=replace(QUICK, threads=1)) as made:
        yield made


def test_a_figure_of_many_rows_is_refused_in_one_sentence(site, monkeypatch):
    client = site.client()
    made = client.post("/release", json=body()).json()
    monkeypatch.setitem(answers._IN_FILES, "png", ("A figure", 2, "Ask for fewer rows."))
    refused = client.get(f"/releases/{made['id']}?format=png")
    assert (refused.status_code, refused.json()["error"]) == (
        406,
        "A figure over HTTP can have at most 2 rows, but this answer has 3.",
    )


def test_figures_that_are_being_drawn_leave_the_threads_of_answers_alone(site, monkeypatch):
    begun, end = threading.Event(), threading.Event()

    def slow(_: object, file: Path) -> Path:
        begun.set()
        assert end.wait(PATIENCE)
        file.write_bytes(b"figure")
        return file

    monkeypatch.setattr(answers, "_saved", slow)
    made = site.client().post("/release", json=body()).json()
    with ThreadPoolExecutor(3) as pool:
        figures = [
            pool.submit(site.client().get, f"/releases/{made['id']}?format=png") for _ in range(2)
        ]
        try:
            assert begun.wait(PATIENCE)
            other = pool.submit(site.client("bob").post, "/release", json=body())
            assert other.result(PATIENCE).status_code == 200
        finally:
            end.set()
        assert [figure.result(PATIENCE).content for figure in figures] == [b"figure"] * 2


def test_a_repeat_that_is_not_kept_is_told_how_to_be_had_again(site, one_day, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr(grant, "_REPEATS", 1)
    client = site.client("cleo")
    asked = [body(epsilon="0.2") for _ in range(3)]
    made = [client.post("/release", json=one).json() for one in asked]
    assert len({one["sha256"] for one in made}) == 1
    assert [client.get(f"/releases/{one['id']}").status_code for one in made] == [200, 200, 404]
    assert (
        "POST /release with the same body"
        in client.get(f"/releases/{made[2]['id']}").json()["advice"]
    )
    spent = site.study.spent
    assert client.post("/release", json=asked[2]).json()["table"] == made[2]["table"]
    assert site.study.spent == spent
