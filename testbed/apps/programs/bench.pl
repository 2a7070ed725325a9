# Small classic computations: perl bench.pl JOB SIZE, or perl bench.pl words FILE
my %jobs = (
    sieve => sub {
        my ($n) = @_; my (@composite, $count);
        for my $i (2 .. $n) {
            next if $composite[$i];
            $count++;
            for (my $j = $i * $i; $j <= $n; $j += $i) { $composite[$j] = 1 }
        }
        return $count;
    },
    matrix => sub {
        my ($n) = @_; my (@a, $sum);
        for my $i (0 .. $n - 1) { for my $j (0 .. $n - 1) { $a[$i][$j] = ($i * 7 + $j * 3) % 11 } }
        for my $i (0 .. $n - 1) {
            for my $j (0 .. $n - 1) {
                my $t = 0;
                $t += $a[$i][$_] * $a[$_][$j] for 0 .. $n - 1;
                $sum = ($sum + $t * ($i + 2 * $j)) % 1000003;
            }
        }
        return $sum;
    },
    words => sub {
        my ($path) = @_; my %count;
        open(my $in, '<', $path) or die "$path: $!";
        while (my $line = <$in>) { $count{lc $1}++ while $line =~ /([a-z]{3,})/gi }
        my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
        return join ' ', map { "$_=$count{$_}" } @top[0 .. 9];
    },
    sorting => sub {
        my ($n) = @_; my ($seed, @rows) = (42);
        for (1 .. $n) { $seed = ($seed * 16807) % 2147483647; push @rows, { key => $seed, name => "n" . $seed % 1000 } }
        my @sorted = sort { $a->{name} cmp $b->{name} || $a->{key} <=> $b->{key} } @rows;
        return join ' ', map { $sorted[$_ * int($n / 10)]{key} } 0 .. 9;
    },
);
print $jobs{$ARGV[0]}->($ARGV[1]), "\n";
