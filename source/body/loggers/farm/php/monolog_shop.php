<?php
// monolog_shop.php line|stacktraces|json|logstash: Monolog.
require 'Monolog/autoload.php';

use Monolog\Formatter\JsonFormatter;
use Monolog\Formatter\LineFormatter;
use Monolog\Formatter\LogstashFormatter;
use Monolog\Handler\StreamHandler;
use Monolog\Logger;

function charge(int $order, int $cents): void
{
    if ($cents < 0) {
        throw new InvalidArgumentException("negative amount: $cents");
    }
}

$handler = new StreamHandler('php://stderr');
switch ($argv[1]) {
    case 'stacktraces': // as Laravel does
        $line = new LineFormatter(null, 'Y-m-d H:i:s', true, true);
        $line->includeStacktraces();
        $handler->setFormatter($line);
        break;
    case 'json':
        $handler->setFormatter(new JsonFormatter());
        break;
    case 'logstash':
        $handler->setFormatter(new LogstashFormatter('shop', 'web1'));
        break;
}
$log = new Logger('orders', [$handler]);
$log->info('order placed', ['order' => 1001]);
$log->notice('order shipped', ['order' => 1000]);
$log->warning('article nearly sold out', ['article' => '4711']);
try {
    charge(1002, -5);
} catch (InvalidArgumentException $e) {
    $log->error('order could not be charged', ['exception' => $e]);
}
$log->emergency('no connection to the bank');
