// winston-syslog over TCP, with RFC 5424 or RFC 3164 and no line feeds between its messages.
import winston from "winston"
import { Syslog } from "winston-syslog"
import { paced, report, service, sleep, url } from "./common.mjs"

const { hostname: host, port } = new URL(url)
const type = process.env.INTEROP_TYPE
const transport = new Syslog({
	host,
	port,
	protocol: "tcp4",
	type,
	app_name: service,
	localhost: "web1",
	level: "debug",
})
transport.on("error", (err) => console.error(String(err)))
const format = winston.format.printf((info) => info.message)
const log = winston.createLogger({
	levels: winston.config.syslog.levels,
	level: "debug",
	format,
	transports: [transport],
})
for await (const r of paced()) log.log({ level: r.level === "warn" ? "warning" : r.level, message: r.msg })
await sleep(1000)
report(null)
