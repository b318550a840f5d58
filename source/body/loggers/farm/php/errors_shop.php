<?php
// What PHP itself and error_log() write.
function charge(int $order, int $cents): void
{
    if ($cents < 0) {
        throw new InvalidArgumentException("negative amount: $cents");
    }
}

error_log('order 1001 placed');
echo $stock['4711'] ?? '', $left;
trigger_error('the price list is old', E_USER_DEPRECATED);
trigger_error('article 4711 is nearly sold out', E_USER_NOTICE);
charge(1002, -5);
