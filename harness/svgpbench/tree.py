"""Functions on trees of arrays. A tree is a leaf, or a tuple or NamedTuple of trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from svgpbench.ops import Tree


def leaves(tree: Tree) -> list[Any]:
    """Return the leaves of a tree, depth first."""
    if isinstance(tree, tuple):
        return [leaf for child in tree for leaf in leaves(child)]
    return [tree]


def rebuild(like: Tree, values: Iterator[Any]) -> Tree:
    """Return a tree with the structure of `like` and the leaves of `values`, in order."""
    if isinstance(like, tuple):
        children = [rebuild(child, values) for child in like]
        # a NamedTuple takes its fields one by one, a tuple takes one iterable
        return type(like)(*children) if hasattr(like, "_fields") else tuple(children)
    return next(values)


def tree_map(f: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply `f` leaf by leaf to trees with the same structure."""
    return rebuild(tree, iter([f(*xs) for xs in zip(*map(leaves, (tree, *rest)), strict=True)]))


def named_leaves(tree: Tree, prefix: str = "") -> list[tuple[str, Any]]:
    """Return the leaves with their dotted field names, such as `kernel.lengthscales`."""
    if isinstance(tree, tuple):
        fields = getattr(tree, "_fields", None) or [str(i) for i in range(len(tree))]
        return [
            pair
            for name, child in zip(fields, tree, strict=True)
            for pair in named_leaves(child, f"{prefix}.{name}" if prefix else name)
        ]
    return [(prefix, tree)]
