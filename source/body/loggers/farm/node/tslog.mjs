import './host.mjs'
import { Logger } from 'tslog'
import { decline } from './shop.mjs'

const log = new Logger(process.argv[2] === 'json' ? { type: 'json', name: 'orders' } : {})
log.silly('basket opened')
log.info('order placed')
log.warn('stock is low')
log.error('payment failed', decline())
log.fatal('no till is open')
