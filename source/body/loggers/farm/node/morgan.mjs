import http from 'node:http'
import morgan from 'morgan'
import { answer, visit } from './shop.mjs'

const log = morgan(process.argv[2])
visit(http.createServer((req, res) => log(req, res, () => answer(req, res))))
