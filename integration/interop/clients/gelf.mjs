// winston-log2gelf: GELF over HTTP, one record a request. It does not look at the answers.
import http from "node:http"
import winston from "winston"
import Log2gelf from "winston-log2gelf"
import { at, paced, report, service, url, waitFor } from "./common.mjs"

// The client does not tell when it is done.
const { request } = http
let open = 0
http.request = (...args) => {
	open += 1
	return request(...args).once("close", () => {
		open -= 1
	})
}

const { hostname, port } = new URL(url)
const transport = new Log2gelf({ host: hostname, port, protocol: "http", level: "debug", hostname: "shop-1", service })
const log = winston.createLogger({ level: "debug", transports: [transport] })
for await (const r of paced()) {
	at(r, () => log.log({ level: r.level, message: r.msg, mark: r.mark, n: r.n }))
}
await waitFor(() => open === 0)
report(null)
