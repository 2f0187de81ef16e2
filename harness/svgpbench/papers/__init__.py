"""Paper folders: claims and printed numbers of each paper, and the predicates that grade the claims."""

from svgpbench.papers.loading import Paper, PrintedFigure, load_paper, paper_folders
from svgpbench.papers.schema import Artefact, Claim

__all__ = ["Artefact", "Claim", "Paper", "PrintedFigure", "load_paper", "paper_folders"]
