"""From runs to an answer in Python: draw runs, compare models on inputs never seen, train, predict.

python examples/quickstart.py
"""

from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crossperf as xp


def main() -> None:
    runs = xp.datasets.toy.make_table(apps=12, inputs=8, seed=1)  # or: runs = xp.read_runs("runs.parquet")
    data = xp.build(runs)
    print(data)

    # Any object with fit and predict takes part beside the models that come along; "crossperf" is the default one.
    mine = make_pipeline(StandardScaler(), Ridge())
    result = xp.evaluate(data, {"mine": mine, "extra-trees": "extra-trees"}, split="workload", n_folds=4)
    print(result.scores.to_frame()[["model", "typical_factor", "top1"]])

    model = xp.train(runs, "extra-trees")
    new_runs = [
        run for run in xp.datasets.toy.make_runs(apps=1, inputs=1, repeats=1, seed=2) if run.platform == "cpu-a"
    ]
    answer = model.predict(new_runs, relative_to="fastest")
    for platform, times in answer.predictions[0].relative_time.items():
        print(f"{platform}: {times:.2f}x")


if __name__ == "__main__":
    main()
