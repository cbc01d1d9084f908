"""Names that help needs: kept apart from the configuration, whose library takes longer to import than help to print."""

METHODS = {
    "isame": "adapts encoder and head to each task alone, as MAML does (the paper's iSAME, Algorithm 1)",
    "esame": "adapts only the head to each task alone, as ANIL does (the paper's eSAME, Algorithm 1)",
    "classical": "all tasks at once on every batch, end to end (the paper's Cl, Algorithm 2)",
    "finetuned": "classical on gc, nc and lp, then on the tasks named (the paper's FT, question Q2)",
    "traditional": "meta-learning that adapts to all tasks at once, as MAML; adapts=heads: as ANIL (Algorithm 3)",
    "infomax": "self-supervised reference, no labels (Deep Graph Infomax, Veličković et al. 2019)",
    "untrained": "the encoder at its initialisation, a floor",
}
"""What can be trained, with one line each."""

CHOOSE_C = ("score", "loss")
"""What validation graphs choose the C of a linear probe by: the score that tables show; or, for classes, the cross
entropy of decision values, which a hundred graphs tell far more steadily than an accuracy."""
