"""Support vector data description written literally and slowly, in two ways that share nothing with the library's solver."""

from itertools import product

import numpy as np


def objective(K, weights):
    """What the dual minimises."""
    return weights @ K @ weights - np.diag(K) @ weights


def by_enumeration(K, C):
    """Try every way of putting rows inside, on and outside the sphere; keep the best weights. 3^n systems: n <= 6."""
    n, best = len(K), None
    for sides in product("ISO", repeat=n):
        free = [i for i in range(n) if sides[i] == "S"]
        weights = np.array([C if side == "O" else 0.0 for side in sides])
        system = np.zeros((len(free) + 1, len(free) + 1))
        system[0, 1:] = system[1:, 0] = 1.0
        system[1:, 1:] = 2.0 * K[np.ix_(free, free)]
        right = np.concatenate([[1.0 - weights.sum()], np.diag(K)[free] - 2.0 * K[free] @ weights])
        weights[free] = np.linalg.lstsq(system, right)[0][1:]
        is_feasible = abs(weights.sum() - 1.0) < 1e-9 and (weights > -1e-9).all() and (weights < C + 1e-9).all()
        if is_feasible and (best is None or objective(K, weights) < objective(K, best)):
            best = weights
    return best


def by_pairs(K, C, most=200_000):
    """Move weight between the two rows that violate their conditions most, until none does."""
    n, weights = len(K), np.zeros(len(K))
    for i in range(n):
        weights[i] = min(C, max(0.0, 1.0 - C * i))
    h = 2.0 * K @ weights - np.diag(K)
    for _ in range(most):
        may_take = np.where(weights < C, h, np.inf)
        taker, giver = np.argmin(may_take), np.argmax(np.where(weights > 0.0, h, -np.inf))
        if h[giver] - may_take[taker] < 1e-12 * np.abs(K).max():
            return weights
        curvature = 2.0 * (K[taker, taker] + K[giver, giver] - 2.0 * K[taker, giver])
        room = min(C - weights[taker], weights[giver])
        amount = min(room, (h[giver] - h[taker]) / curvature) if curvature > 0 else room
        gives_all, takes_all = amount >= weights[giver], amount >= C - weights[taker]
        weights[taker] = C if takes_all else weights[taker] + amount
        weights[giver] = 0.0 if gives_all else weights[giver] - amount
        h += 2.0 * amount * (K[:, taker] - K[:, giver])
    raise AssertionError("the pairs did not settle")


def violation(K, C, weights, threshold):
    """The largest violation of the conditions of Karush, Kuhn and Tucker, of sphere and weights together."""
    distances = np.diag(K) - 2.0 * K @ weights + weights @ K @ weights
    misses = [abs(weights.sum() - 1.0), *-weights, *(weights - C)]
    misses += list((distances - threshold)[weights < C])  # none with room for more weight lies outside
    misses += list((threshold - distances)[weights > 0.0])  # none with weight lies inside
    return max(misses)
