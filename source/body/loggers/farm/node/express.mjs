import http from 'node:http'
import express from 'express'
import { decline, visit } from './shop.mjs'

const app = express()
app.post('/orders', () => { throw decline() })
visit(http.createServer(app), ['POST /orders'])
