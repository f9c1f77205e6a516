"""How the machines look in all pictures: Okabe and Ito's colours, which the colour-blind tell apart, and markers."""

LOOKS = {
    "AMM": ("#999999", "v", "-"),
    "GAMM": ("#E69F00", "s", "-"),
    "tangent start": ("#0072B2", "o", "-"),
    "tangent start, as it comes": ("#56B4E9", "o", ":"),
    "tangent start, log-loss": ("#0072B2", "o", "-"),
    "tangent start, hinge": ("#009E73", "D", "-"),
    "RBF-SVM": ("#D55E00", "^", "--"),
    "linear SVM": ("#000000", "x", "--"),
    "MLP": ("#CC79A7", "P", "--"),
    "random forest": ("#009E73", "X", "none"),
    "gradient boosting": ("#F0E442", "*", "none"),
    "LVQ2.1": ("#56B4E9", "d", "none"),
}
#: The two classes of a board: light enough for points and lines over them.
FIELDS = ("#56B4E9", "#E69F00")
POINTS = ("#0072B2", "#D55E00")


def plain(ax):
    """Only the axes that are read."""
    ax.spines[["top", "right"]].set_visible(False)
