"""A small network learns which of two spirals a point is on."""

import numpy as np

import tidemark as td
from table import is_small


def drawn(count, seed):
    """Points on two spirals that turn around each other, a little off."""
    random = np.random.default_rng(seed)
    spiral = random.integers(0, 2, count).astype(np.int32)
    turn = random.uniform(0.4, 4.0, count)
    side = 1 - 2 * spiral
    points = np.stack([side * turn * np.cos(2 * turn), side * turn * np.sin(2 * turn)], 1)
    return (points + random.normal(scale=0.03, size=(count, 2))).astype(np.float32), spiral


def main():
    td.random.seed(1)
    model = td.nn.Sequential(
        td.nn.Dense(64, activation=td.relu), td.nn.Dense(64, activation=td.relu), td.nn.Dense(2)
    )
    print(td.nn.summary(model, td.spec((100, 2))))
    history = td.nn.fit(
        model,
        drawn(1000, seed=1),
        batch_size=100,
        loss=td.nn.losses.sparse_categorical_crossentropy,
        optimizer=td.nn.Adam(learning_rate=0.01),
        epochs=60 if is_small() else 200,
        validation=drawn(500, seed=2),
        early_stopping=td.nn.EarlyStopping(patience=30),
        metrics={"accuracy": td.nn.metrics.accuracy},
        progress="none" if is_small() else "automatic",
    )
    best = history.epochs[history.best - 1]
    print(f"a step was planned to take {history.planned}; it was traced {history.traces} times")
    print(f"accuracy on points it has not seen: {best.validation_metrics['accuracy']:.3f}")
    assert best.validation_metrics["accuracy"] > 0.97


if __name__ == "__main__":
    main()
