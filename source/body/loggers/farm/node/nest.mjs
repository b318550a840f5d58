import 'reflect-metadata'
import { ConsoleLogger } from '@nestjs/common'
import { decline } from './shop.mjs'

const log = new ConsoleLogger('OrdersService', process.argv[2] === 'json' ? { json: true } : {})
log.log('order placed')
log.warn('stock is low')
log.error('payment failed', decline().stack)
log.verbose('basket opened')
log.fatal('no till is open')
