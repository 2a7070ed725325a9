"""A new platform added to a trained model from few workloads, and how well that does."""
