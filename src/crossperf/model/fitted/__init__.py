"""What answers: fitted models as plain NumPy arrays, without scikit-learn and PyTorch.

A fitted model is a tree of frozen dataclasses whose leaves are arrays; `model.store` turns it into named arrays and
back, so that a saved model loads and predicts with NumPy alone.
"""
