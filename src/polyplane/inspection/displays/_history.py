"""How training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from polyplane.inspection._estimators import plane_classifier
from polyplane.inspection.displays._style import bare, colour, pyplot


@dataclass(kw_only=True, eq=False, repr=False)
class HistoryDisplay:
    """The figures of training, step by step: one panel for each.

    Parameters
    ----------
    history : mapping of str to sequence of float
        The figures after each step, as in `history_`.

    Attributes
    ----------
    axes_, figure_
        Matplotlib's axes and figure, after `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.inspection import HistoryDisplay
    >>> machine = CuttingPlaneSVC().fit(*load_iris(return_X_y=True))
    >>> display = HistoryDisplay.from_estimator(machine, figures=["primal", "dual", "gap"])
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
            A fitted classifier of this library, or a pipeline that ends in one.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : HistoryDisplay
            With `axes_` and `figure_`.
        """
        return cls(history=plane_classifier(estimator).history_).plot(**kwargs)

    def plot(self, *, figures: Sequence[str] | None = None, against: str = "step") -> Self:
        """Draw.

        Parameters
        ----------
        figures : sequence of str, default=None
            Which figures of the history to show; by default all that vary.
        against : {"step", "time"}, default="step"
            What to draw them against: passes (or other steps of the learner), or seconds.

        Returns
        -------
        display : HistoryDisplay
            Itself.
        """
        names = [name for name in self.history if name != "time"] if figures is None else list(figures)
        if figures is None:  # nothing flat is drawn, unless there is nothing else
            names = [name for name in names if len(set(self.history[name])) > 1] or names
        for name in names:
            if name not in self.history:
                raise ValueError(f"The history has no {name!r}; it has {', '.join(self.history)}.")
        if not names:
            raise ValueError("The history holds nothing but times.")
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
