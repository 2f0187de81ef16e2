"""Paper folders: claims and printed numbers of each paper, and the predicates that grade the claims."""

from svgpbench.papers.loading import Paper, PrintedFigure, load_paper
from svgpbench.papers.schema import Artefact, Claim
from svgpbench.plugins import paper_folders

__all__ = ["Artefact", "Claim", "Paper", "PrintedFigure", "load_paper", "paper_folders"]
