"""Work through jobs, one after the other or in several processes."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.managers import SyncManager

import torch

from spanshot.allocator import keep_memory
from spanshot.errors import SpanshotError
from spanshot.research.experiments.reproduce.jobs import Job, Progress, Watch

POLL_SECONDS = 0.5
Messages = queue.Queue[Progress]


class WorkerError(SpanshotError):
    """A process that trains has ended before its run."""


def work_through(jobs: Sequence[Job], processes: int, watch: Watch) -> None:
    """Do all jobs that are not done, in their order. Jobs marked as alone follow at the end, one at a time."""
    open_jobs = [job for job in jobs if not job.is_done]
    together = [job for job in open_jobs if not job.alone]
    if processes > 1 and len(together) > 1:
        _work_in_processes(together, min(processes, len(together)), watch)
        open_jobs = [job for job in open_jobs if job.alone]
    keep_memory()
    for job in open_jobs:
        job.work(watch)


def _work_in_processes(jobs: Sequence[Job], processes: int, watch: Watch) -> None:
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads of torch in an unknown state
    threads = max(1, (os.cpu_count() or 1) // processes)
    manager = SyncManager(ctx=context)
    manager.start(_end_with_parent)
    with manager:
        messages: Messages = manager.Queue()
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(processes, context, _start_worker, (threads,))
        try:
            open_futures: set[Future[None]] = {pool.submit(_work, job, messages) for job in jobs}
            while open_futures:
                finished, open_futures = wait(open_futures, POLL_SECONDS, FIRST_COMPLETED)
                _pass_on(messages, watch)
                for future in finished:
                    future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "a training process ended unexpectedly, perhaps for lack of memory; run the same command again to "
                "continue, with fewer --jobs"
            ) from None
        except BaseException:  # runs resume from their last saved state: there is no need to wait for them
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _pass_on(messages: Messages, watch: Watch) -> None:
    while True:
        try:
            watch(messages.get_nowait())
        except queue.Empty:
            return


def _work(job: Job, messages: Messages) -> None:
    job.work(messages.put)


def _start_worker(threads: int) -> None:
    """Limit the threads of a worker, and end it with its parent: a second command must not train the same run."""
    torch.set_num_threads(threads)
    keep_memory()
    _end_with_parent()


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, however that was killed."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
