"""Writes the golden file of ensembles of trees beside this folder.

    python tests/ops/gen/make_trees.py
"""

import numpy as np

import ort
from litert import Tensor
from make_ops import File

MISSING = 0x40000000
OF = {"SUM": 0, "MIN": 1, "MAX": 2}


def forest(rng, trees, depth, columns, tracks):
    """Nodes [column, float, more, no more] of random trees, roots, and how many leaves there are;
    limits are of a grid, so that rows meet them."""
    nodes, roots, leaves = [], [], 0

    def grow(left):
        nonlocal leaves
        at = len(nodes)
        if left == 0 or (left < depth and rng.random() < 0.2):
            nodes.append([0, np.float32(0).view(np.int32) + leaves, at, at])
            leaves += 1
            return at
        limit = np.float32(rng.integers(-4, 5) / 2)
        flag = MISSING if tracks and rng.random() < 0.5 else 0
        nodes.append([int(rng.integers(columns)) + flag, int(limit.view(np.int32)), 0, 0])
        nodes[at][3] = grow(left - 1)
        nodes[at][2] = grow(left - 1)
        return at

    for _ in range(trees):
        roots.append(grow(depth))
    return np.array(nodes, np.int32), np.array(roots, np.int32), leaves


def told(nodes, roots, weights, results, of):
    """The attributes of TreeEnsembleRegressor."""
    tree = np.searchsorted(roots, np.arange(len(nodes)), "right") - 1
    leaf = np.array([n[2] == i for i, n in enumerate(nodes)])
    attrs = {"nodes_treeids": tree.tolist(), "nodes_nodeids": list(range(len(nodes))),
             "nodes_featureids": (nodes[:, 0] & ~MISSING).tolist(),
             "nodes_values": np.where(leaf, 0, nodes[:, 1].copy().view(np.float32)).tolist(),
             "nodes_modes": ["LEAF" if l else "BRANCH_LEQ" for l in leaf],
             "nodes_truenodeids": np.where(leaf, 0, nodes[:, 3]).tolist(),
             "nodes_falsenodeids": np.where(leaf, 0, nodes[:, 2]).tolist(),
             "nodes_missing_value_tracks_true": (nodes[:, 0] // MISSING).tolist()}
    places = np.flatnonzero(leaf)
    attrs["target_treeids"] = np.repeat(tree[places], results).tolist()
    attrs["target_nodeids"] = np.repeat(places, results).tolist()
    attrs["target_ids"] = np.tile(np.arange(results), len(places)).tolist()
    attrs["target_weights"] = weights[nodes[places, 1]].reshape(-1).tolist()
    return {**attrs, "n_targets": results, "aggregate_function": of}


def trees():
    file = File("trees")
    file.source = ort.SOURCE + " TreeEnsembleRegressor"
    for of, count, depth, rows, results, tracks in (
            ("SUM", 1, 0, 2, 1, False), ("SUM", 3, 3, 1, 1, False), ("SUM", 11, 4, 3, 2, False),
            ("SUM", 5, 5, 19, 1, True), ("MIN", 4, 3, 9, 2, False), ("MAX", 9, 2, 1, 3, True)):
        nodes, roots, leaves = forest(file.rng, count, depth, 4, tracks)
        weights = np.round(file.rng.uniform(-1, 1, (leaves, results)), 2).astype(np.float32)
        x = (file.rng.integers(-5, 6, (rows, 4)) / 2).astype(np.float32)
        if tracks:
            x[file.rng.random(x.shape) < 0.3] = np.nan
        y, = ort.run("TreeEnsembleRegressor", [x], 1, domain="ai.onnx.ml",
                     **told(nodes, roots, weights, results, of))
        file.add(f"{of} {count} trees of depth {depth}, {rows} rows, {results} results"
                 + (", NaN" if tracks else ""),
                 [Tensor("f32", data=x), Tensor("s32", data=nodes, constant=True),
                  Tensor("s32", data=roots, constant=True),
                  Tensor("f32", data=weights, constant=True)],
                 [Tensor("f32", data=y)], {"of": OF[of], "depth": depth})
    file.write()


if __name__ == "__main__":
    trees()
