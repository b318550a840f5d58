import { decline } from './shop.mjs'

if (process.argv[2] === 'ci') process.env.CI = 'true'
const { consola } = await import('consola')

consola.log('the shop opens')
consola.info('order placed')
consola.success('order packed')
consola.warn('stock is low')
consola.error(decline())
consola.fatal('no till is open')
