# Counts words of a text and their letters.
BEGIN { PROCINFO["sorted_in"] = "@ind_str_asc" }
{ gsub(/[^a-z ]/, ""); for (i = 1; i <= NF; i++) { count[$i]++; letters += length($i) } }
END { for (word in count) if (count[word] > 50) print word, count[word]; print letters }
