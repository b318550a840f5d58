// pino-loki: Loki push, JSON. A line is the JSON of pino. It does not tell the outcome
// of a batch, and drops one after any error.
import pino from "pino"
import { pinoLoki } from "pino-loki"
import { countFetches, paced, report, service, url, waitFor } from "./common.mjs"

const open = countFetches()
const stream = pinoLoki({
	host: url,
	batching: { interval: 0.2 },
	labels: { service_name: service },
	silenceErrors: false,
})
let time
const log = pino({ base: undefined, level: "trace", timestamp: () => `,"time":${time}` }, stream)
for await (const r of paced()) {
	time = r.ms
	log[r.level]({ mark: r.mark, n: r.n }, r.msg)
}
stream.once("close", () => waitFor(() => open() === 0).then(() => report(null)))
stream.end()
