// pino-elasticsearch: _bulk with its own bulk helper.
import pino from "pino"
import pinoElastic from "pino-elasticsearch"
import { paced, report, service, url, waitFor } from "./common.mjs"

const stream = pinoElastic({ index: service, node: url, esVersion: 8, flushBytes: 10000, flushInterval: 1000 })
const dropped = new Set()
let stats
let failed
stream.on("insertError", (err) => {
	dropped.add(err.document.mark)
	console.error(String(err))
})
stream.on("insert", (s) => {
	stats = s
})
stream.on("error", (err) => {
	failed = true
	console.error(String(err))
})
let time
const all = []
const log = pino(
	{
		base: undefined,
		level: "trace",
		formatters: { level: (label) => ({ level: label }) },
		timestamp: () => `,"time":${time}`,
	},
	stream,
)
for await (const r of paced()) {
	time = r.ms
	all.push(r.mark)
	log[r.level]({ mark: r.mark, n: r.n }, r.msg)
}
stream.end()
await waitFor(() => stats || failed)
report(failed || !stats ? null : all.filter((m) => !dropped.has(m)))
