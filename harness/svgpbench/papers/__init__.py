"""Papers as folders of data: what each claims, prints and leaves out; and what decides a claim."""

from svgpbench.papers.loading import Paper, PrintedFigure, load_paper, paper_folders
from svgpbench.papers.schema import Artefact, Claim

__all__ = ["Artefact", "Claim", "Paper", "PrintedFigure", "load_paper", "paper_folders"]
