"""From runs to an answer in Python: draw runs, score a model on inputs never seen, train, predict.

python examples/quickstart.py
"""

from crossperf import dataset
from crossperf.datasets import toy
from crossperf.evaluation import run as evaluate
from crossperf.model import Ridge, Saved
from crossperf.prediction import answer as predict


def main() -> None:
    runs = toy.make_table(apps=12, inputs=8, seed=1)  # or: runs = "runs.parquet"
    data = dataset.build(runs)
    print(f"{len(data)} cells, {len(data.features)} features, platforms {', '.join(data.platforms)}")

    # Ridge keeps the example quick; Crossperf() is used the same way.
    result = evaluate.evaluate(data, {"ridge": Ridge}, split="workload", n_folds=4)
    print(f"typical factor on unseen inputs: {result.scores['ridge'].typical_factor:.2f}")

    model = Ridge().fit(data.features_nf, data.log_relative_time_np)
    new_run = [run for run in toy.make_runs(apps=1, inputs=1, repeats=1, seed=2) if run.platform == "cpu-a"]
    answer = predict.predict(Saved.of(model, data), new_run, relative_to="fastest")
    for platform, times in answer.predictions[0].relative_time.items():
        print(f"{platform}: {times:.2f}x")


if __name__ == "__main__":
    main()
