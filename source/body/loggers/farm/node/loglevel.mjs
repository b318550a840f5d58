import log from 'loglevel'
import { decline } from './shop.mjs'

log.setLevel('info')
log.info('order placed')
log.warn('stock is low')
log.error(decline())
