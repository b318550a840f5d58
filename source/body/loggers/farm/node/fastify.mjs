import './host.mjs'
import Fastify from 'fastify'
import { decline } from './shop.mjs'

const app = Fastify({ logger: true })
app.get('/orders/:id', () => 'an order\n')
app.post('/orders', () => { throw decline() })
await app.inject({ method: 'GET', url: '/orders/4711' })
await app.inject({ method: 'POST', url: '/orders' })
app.log.warn('stock is low')
