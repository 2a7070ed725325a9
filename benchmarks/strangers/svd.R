# The singular values of a matrix, and a regression.
n <- as.integer(commandArgs(trailingOnly = TRUE)[1])
set.seed(1)
m <- matrix(rnorm(n * n), n, n)
cat(sprintf("%.4f\n", svd(m, nu = 0, nv = 0)$d[1:3]), sep = "")
cat(sprintf("%.4f\n", coef(lm(m[, 1] ~ m[, 2:40]))[1:3]), sep = "")
