"""The head computes on one thread of BLAS and leaves the threads of others as they were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import spanshot
from spanshot.heads.blas import one_thread


def blas_threads() -> list[int]:
    """Threads of numpy's BLAS; other packages, such as scipy, bring their own."""
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return [library["num_threads"] for library in blas if "numpy" in library["filepath"]]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if 2 not in blas_threads():
            pytest.skip("numpy's BLAS has no setting for threads")
        yield


def test_one_thread_inside_and_the_former_number_after():
    before = blas_threads()
    assert set(one_thread(blas_threads)()) == {1}
    assert blas_threads() == before


def test_the_former_number_returns_after_an_error():
    before = blas_threads()

    @one_thread
    def fail() -> None:
        raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        fail()
    assert blas_threads() == before


def test_taggers_in_several_threads_leave_no_limit_behind():
    before = blas_threads()
    tagger = spanshot.learn(["[Oslo](city) is cold.", "[Rome](city) is warm."])
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: tagger(f"Oslo and Rome have {number} parks."), range(40)))
    assert blas_threads() == before
