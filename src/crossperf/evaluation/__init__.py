"""How good models are: metrics, cross-validation, held-out predictions, the latent map, trained models."""
