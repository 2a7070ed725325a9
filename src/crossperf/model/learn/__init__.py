"""What learns with PyTorch: training loops, the VAE, the ensemble and the Gaussian process."""
