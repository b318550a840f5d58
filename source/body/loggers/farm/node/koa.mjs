import http from 'node:http'
import Koa from 'koa'
import logger from 'koa-logger'
import { decline, visit } from './shop.mjs'

const app = new Koa()
if (process.argv[2] === 'access') app.use(logger())
app.use((ctx) => {
  if (ctx.method === 'POST' && process.argv[2] !== 'access') throw decline()
  ctx.body = 'an order\n'
})
visit(http.createServer(app.callback()), ['GET /orders/4711', 'POST /orders'])
