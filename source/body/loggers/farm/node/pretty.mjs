import './host.mjs'
import pino from 'pino'
import pretty from 'pino-pretty'
import { decline } from './shop.mjs'

const log = pino(pretty({ sync: true, colorize: process.argv[2] === 'terminal' }))
log.info('order placed')
log.info({ order: 4711 }, 'order packed')
log.warn('stock is low')
log.error(decline(), 'payment failed')
