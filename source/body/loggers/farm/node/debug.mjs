import createDebug from 'debug'

const log = createDebug('shop:orders')
log('order %d placed', 4711)
log('payment failed: %s', 'card declined')
