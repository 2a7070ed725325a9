"""Answers for new runs from a trained model, and the reasons for them."""
