# Log::Dispatch, with its numbers and words for levels.
use strict;
use warnings;
use Log::Dispatch;

my $log = Log::Dispatch->new(
    outputs   => [['Screen', min_level => 'info', newline => 1]],
    callbacks => sub { my %p = @_; sprintf '%s [%s] %s', scalar(localtime), $p{level}, $p{message} },
);
$log->info('order 1001 placed');
$log->notice('order 1000 shipped');
$log->warning('article 4711 is nearly sold out');
$log->error('card of order 1001 declined');
$log->emergency('no connection to the bank');
