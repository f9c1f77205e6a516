"""The full `make_url_stream`: seconds to make it, and the error on each day before it is learned from.

Without arguments all 120 days are made, 2.4 million rows; a number limits the days. The peer is scikit-learn's SGD.
"""

import sys
import time

import numpy as np
from benchmarks.data.malicious_urls import make_url_stream
from sklearn.linear_model import SGDClassifier

from polyplane import PegasosSVC


def main(n_days):
    machines = {
        "SGDClassifier": SGDClassifier(
            loss="log_loss", alpha=1e-7, learning_rate="constant", eta0=0.005, random_state=0
        ),
        "PegasosSVC": PegasosSVC(alpha=1e-5, average=False, random_state=0),
    }
    errors = {name: [] for name in machines}
    making = 0.0
    stream = make_url_stream()
    for day in range(n_days):
        began = time.process_time()
        X, y = stream[day]
        making += time.process_time() - began
        for name, machine in machines.items():
            if day:
                errors[name].append(100 * (1 - machine.score(X, y)))
            machine.partial_fit(X, y, classes=[-1, 1])
        if day and day % 10 == 0:
            figures = "  ".join(f"{name} {np.mean(values[-10:]):5.2f} %" for name, values in errors.items())
            print(f"days {day - 9:3} to {day:3}  {figures}  {making:6.1f} s to make so far", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
