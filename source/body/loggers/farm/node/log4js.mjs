import log4js from 'log4js'
import { decline } from './shop.mjs'

if (process.argv[2] === 'basic') {
  log4js.configure({
    appenders: { out: { type: 'stdout', layout: { type: 'basic' } } },
    categories: { default: { appenders: ['out'], level: 'trace' } }
  })
}
const log = log4js.getLogger(process.argv[2] === 'basic' ? 'orders' : undefined)
log.level = 'trace'
log.trace('basket opened')
log.info('order %d placed', 4711)
log.warn('stock is low')
log.error('payment failed', decline())
log.fatal('no till is open')
