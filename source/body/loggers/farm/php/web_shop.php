<?php
// The shop for PHP-FPM.
throw new InvalidArgumentException('negative amount: -5');
