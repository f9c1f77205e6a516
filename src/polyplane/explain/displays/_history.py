"""`HistoryDisplay`: the history of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from polyplane.explain._estimators import plane_classifier
from polyplane.explain.displays._style import bare, colour, pyplot


@dataclass(kw_only=True, eq=False, repr=False)
class HistoryDisplay:
    """History of training: one panel for each recorded quantity, such as the loss.

    Parameters
    ----------
    history : mapping of str to sequence of float
        The recorded quantities after each step, as in `history_`.

    Attributes
    ----------
    axes_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import HistoryDisplay
    >>> model = CuttingPlaneSVC().fit(*load_iris(return_X_y=True))
    >>> display = HistoryDisplay.from_estimator(model, figures=["primal", "dual", "gap"])
    >>> len(display.axes_)
    3
    """

    history: Mapping[str, Sequence[float]]

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> Self:
        """Draw the history of a fitted classifier.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted Polyplane classifier, or a pipeline that ends in one.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : HistoryDisplay
            The display, with the attributes `axes_` and `figure_`.
        """
        return cls(history=plane_classifier(estimator).history_).plot(**kwargs)

    def plot(self, *, figures: Sequence[str] | None = None, against: str = "step") -> Self:
        """Draw the display.

        Parameters
        ----------
        figures : sequence of str, default=None
            The quantities to show. If None, all that vary.
        against : {"step", "time"}, default="step"
            Horizontal axis: passes (or other steps of the learner), or time in seconds.

        Returns
        -------
        display : HistoryDisplay
            The display itself.
        """
        names = [name for name in self.history if name != "time"] if figures is None else list(figures)
        if figures is None:  # constant quantities are omitted, unless all are constant
            names = [name for name in names if len(set(self.history[name])) > 1] or names
        for name in names:
            if name not in self.history:
                raise ValueError(f"figures: {name!r} is not in the history, which contains {', '.join(self.history)}.")
        if not names:
            raise ValueError("The history contains only times: there is nothing to draw.")
        if against not in ("time", "step") or (against == "time" and "time" not in self.history):
            raise ValueError(f"against={against!r}: choose 'step'" + (" or 'time'." if "time" in self.history else "."))
        n_steps = len(self.history[names[0]])
        places = self.history["time"] if against == "time" else range(1, n_steps + 1)
        size = (7.0, 1.0 + 1.6 * len(names))
        self.figure_, panels = pyplot().subplots(
            len(names), 1, figsize=size, layout="constrained", sharex=True, squeeze=False
        )
        self.axes_ = panels.ravel()
        for i, (ax, name) in enumerate(zip(self.axes_, names, strict=True)):
            values = self.history[name]
            ax.plot(places, values, color=colour(i), marker="o" if n_steps <= 30 else None, markersize=4)
            if min(values) > 0 and max(values) > 100 * min(values):
                ax.set_yscale("log")
            ax.set_title(f"{name.replace('_', ' ')}: {values[0]:.4g} to {values[-1]:.4g}", loc="left", fontsize=11)
            bare(ax)
        self.axes_[-1].set_xlabel("seconds" if against == "time" else "pass, or step of the learner")
        return self
