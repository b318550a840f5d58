import winston from 'winston'
import { decline } from './shop.mjs'

const { combine, timestamp, json, simple, colorize, cli, errors, printf, splat } = winston.format
const formats = {
  default: undefined,
  json: combine(timestamp(), json()),
  simple: simple(),
  coloured: combine(colorize(), simple()),
  cli: cli(),
  stack: combine(errors({ stack: true }), splat(), timestamp(),
    printf(({ timestamp, level, message, stack }) => `${timestamp} ${level}: ${stack ?? message}`))
}
const log = winston.createLogger({
  level: 'silly',
  format: formats[process.argv[2]],
  transports: [new winston.transports.Console()]
})
log.info('order placed', { order: 4711 })
log.warn('stock is low')
if (process.argv[2] !== 'cli') log.http('GET /orders/4711')
log.verbose('basket opened')
log.error(process.argv[2] === 'stack' ? decline() : 'payment failed')
