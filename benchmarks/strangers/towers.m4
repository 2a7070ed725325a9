divert(-1)
# The towers of Hanoi, and Fibonacci's numbers by recursion.
define(`move', `ifelse($1, 0, `', `move(decr($1), $2, $4, $3)$2$3
move(decr($1), $4, $3, $2)')')
define(`fib', `ifelse(eval($1 < 2), 1, $1, `eval(fib(decr($1)) + fib(eval($1 - 2)))')')
divert`'dnl
move(SIZE, a, b, c)
fib(SIZE)
