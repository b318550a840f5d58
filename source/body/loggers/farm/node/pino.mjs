import './host.mjs'
import { setTimeout } from 'node:timers/promises'
import pino from 'pino'
import { decline } from './shop.mjs'

const log = process.argv[2] === 'named'
  ? pino({ name: 'shop', timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } })
  : pino()
log.info({ order: 4711 }, 'order placed')
log.warn({ article: 'tea', left: 3 }, 'stock is low')
log.error(decline(), 'payment failed')
// pino writes beside the program, and fatal writes at once what is left: they would race.
await setTimeout(100)
log.fatal('no till is open')
