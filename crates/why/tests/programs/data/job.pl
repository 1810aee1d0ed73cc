use strict;
use warnings;
use Digest::SHA qw(sha256_hex);

open my $in, '<', $ARGV[0] or die;
my (%count, %sum);
while (<$in>) {
    my ($first, $second, $number) = /^(\w+) (\w+) (\d+)$/ or next;
    $count{"$first-$second"}++;
    $sum{$first} += $number;
}
my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
printf "%s %d\n", $_, $count{$_} for @top[0 .. 4];
printf "%-8s %d\n", $_, $sum{$_} for sort keys %sum;
my @sieve = (1) x 20000;
for my $i (2 .. 141) { next unless $sieve[$i]; for (my $j = $i * $i; $j < 20000; $j += $i) { $sieve[$j] = 0 } }
print scalar(grep { $sieve[$_] } 2 .. $#sieve), " primes\n";
my $text = join ' ', map { sprintf '%x', $_ * 7919 } 1 .. 500;
(my $changed = $text) =~ s/([0-9a-f])\1/<$1>/g;
print sha256_hex($changed), "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 20; };
print "caught $@";
my $pid = fork // die;
if (!$pid) { exit 7 }
waitpid $pid, 0;
print "child: ", $? >> 8, "\n";
print `echo from a command`;
