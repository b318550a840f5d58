import './host.mjs'
import bunyan from 'bunyan'
import { decline } from './shop.mjs'

const log = bunyan.createLogger({ name: 'orders' })
log.info({ order: 4711 }, 'order placed')
log.warn('stock is low: %s', 'tea')
log.error(decline(), 'payment failed')
log.fatal('no till is open')
