\\ Small computations: the variables JOB and N of the environment say which.
n = eval(getenv("N"));
primes2(n) = { my(s = 0); forprime(p = 2, n, s += p^2 % 1009); s };
factors(n) = { my(s = 0); for(i = 1, 20, s += #factor(nextprime(10^n + i * 7919) * nextprime(10^(n - 1) + i))[, 1]); s };
determinant(n) = matdet(matrix(n, n, i, j, (i * 37 + j * j * 101 + i * j * j * 13) % 1009 - 500)) % 1000003;
zetas(n) = { default(realprecision, n); my(s = 0); for(i = 2, 12, s += zeta(i + 1/3)); floor(s * 10^20) };
job = getenv("JOB");
print(if(job == "primes", primes2(n), job == "factor", factors(n), job == "det", determinant(n), zetas(n)));
quit;
