"""Linear chains: the best path through the tags of a sentence, and the probability of each tag."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spanshot.decode.transitions import Transitions

Array = npt.NDArray[np.float64]


def viterbi(emissions: Array, transitions: Transitions) -> list[int]:
    """Return the tags of the path with the highest score; ties go to the path with the lower last tag.

    >>> lone = Transitions(np.zeros(2), np.array([[0.0, 0.0], [-9.0, 0.0]]), np.zeros(2))
    >>> viterbi(np.array([[0.0, 4.0], [1.0, 0.0], [2.0, 0.0]]), lone)
    [1, 1, 1]
    """
    best = transitions.start + emissions[0]  # [tags]
    before = []
    for row in emissions[1:]:
        reached = best[:, None] + transitions.step  # [from, to]
        before.append(reached.argmax(axis=0))
        best = reached.max(axis=0) + row
    path = [int((best + transitions.end).argmax())]
    for choice in reversed(before):
        path.append(int(choice[path[-1]]))
    return path[::-1]


def marginals(emissions: Array, transitions: Transitions) -> Array:
    """Return the probability of each tag at each word, over all paths. [words, tags]"""
    ahead = np.empty_like(emissions)
    behind = np.empty_like(emissions)
    ahead[0] = transitions.start + emissions[0]
    behind[-1] = transitions.end
    for at in range(1, len(emissions)):
        ahead[at] = np.logaddexp.reduce(ahead[at - 1][:, None] + transitions.step, axis=0) + emissions[at]
        back = -at - 1
        behind[back] = np.logaddexp.reduce(transitions.step + emissions[back + 1] + behind[back + 1], axis=1)
    joint = ahead + behind
    probabilities: Array = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    return probabilities
