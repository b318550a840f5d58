import './host.mjs'
import { Roarr as log } from 'roarr'

log.info('order placed')
log.warn({ article: 'tea' }, 'stock is low')
log.error('payment failed: %s', 'card declined')
