# Groups a CSV table: number of rows, weighted sum and largest value of each group, in order of names.
BEGIN { FS = ","; PROCINFO["sorted_in"] = "@ind_str_asc" }
NR > 1 { count[$2]++; total[$2] += $3 * $4; if ($3 > top[$2]) top[$2] = $3; bucket[$1 % 4096]++ }
END { for (name in count) printf "%s %d %.2f %.2f\n", name, count[name], total[name], top[name]; print length(bucket) }
