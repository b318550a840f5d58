# log4perl_shop.pl easy|pattern: Log::Log4perl.
use strict;
use warnings;
use Log::Log4perl qw(:easy);

if ($ARGV[0] eq 'easy') {
    Log::Log4perl->easy_init($INFO);
} else {
    Log::Log4perl->init(\<<'CONF');
log4perl.rootLogger = INFO, out
log4perl.appender.out = Log::Log4perl::Appender::Screen
log4perl.appender.out.layout = Log::Log4perl::Layout::PatternLayout
log4perl.appender.out.layout.ConversionPattern = [%d] [%p] %F{1}:%L %c %m%n
CONF
}
my $log = Log::Log4perl->get_logger('orders');

sub charge {
    my ($order, $cents) = @_;
    $log->logconfess("negative amount: $cents") if $cents < 0;
}

$log->info('order 1001 placed');
$log->warn('article 4711 is nearly sold out');
eval { charge(1002, -5) };
$log->fatal('no connection to the bank');
