# warn and confess.
use strict;
use warnings;
use Carp qw(confess);

sub charge {
    my ($order, $cents) = @_;
    confess "negative amount: $cents" if $cents < 0;
}

sub place {
    charge($_[0], -5);
}

warn "the price list is old\n";
warn "article 4711 is nearly sold out";
place(1002);
