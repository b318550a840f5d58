import './host.mjs'
import pino from 'pino'
import { decline } from './shop.mjs'

const log = process.argv[2] === 'named'
  ? pino({ name: 'shop', timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } })
  : pino()
log.info({ order: 4711 }, 'order placed')
log.warn({ article: 'tea', left: 3 }, 'stock is low')
log.error(decline(), 'payment failed')
log.fatal('no till is open')
