import log from 'electron-log/node.js'
import { decline } from './shop.mjs'

log.transports.file.resolvePathFn = () => '/srv/shop/main.log'
log.info('order placed')
log.warn('stock is low')
log.error('payment failed', decline())
