# The most frequent words, and how often a line is longer than the one before.
{ for (i = 1; i <= NF; i++) { gsub(/[,.]/, "", $i); count[$i]++ } if (length($0) > last) longer++; last = length($0) }
END { for (word in count) if (count[word] > 2000) print count[word], word; print longer }
