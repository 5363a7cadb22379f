"""A graph and its weights, run by onnxruntime."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnxruntime

from spanshot.engine.graph_file import GraphFile, Tensors
from spanshot.errors import CheckpointError

Arrays = Mapping[str, npt.NDArray[np.generic]]
_SEVERE = 3  # log errors only


class Session:
    """Runs a graph. It can be used from several threads, and in a process that was forked after it was made.

    A fork does not copy the threads that compute, so the child makes a session of its own when it first needs one.
    """

    def __init__(self, graph: GraphFile, weights: Tensors, threads: int) -> None:
        self._content = graph.content
        values = graph.values(weights)
        self._values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in values.items()}
        self._arrays = values  # the memory that the values refer to
        self._threads = threads
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._session = self._open()

    def run(self, outputs: Sequence[str], inputs: Arrays) -> list[npt.NDArray[np.float32]]:
        """Return the named outputs for the inputs."""
        if self._process != os.getpid():
            self._reopen()
        results: list[npt.NDArray[np.float32]] = self._session.run(list(outputs), dict(inputs))
        return results

    def _open(self) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _SEVERE
        options.enable_mem_pattern = False  # shapes differ from call to call
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.add_external_initializers(list(self._values), list(self._values.values()))
        try:
            return onnxruntime.InferenceSession(self._content, options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # onnxruntime has no common base class for its errors
            reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
            raise CheckpointError(f"the model cannot be opened by onnxruntime: {reason}") from None

    def _reopen(self) -> None:
        with self._lock:
            if self._process != os.getpid():
                # The parent's session must not be freed here: that would wait for threads which do not exist.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
                self._session = self._open()
                self._process = os.getpid()
