// winston-loki: Loki push, JSON or protobuf (INTEROP_JSON). Protobuf has no structured
// metadata, so there the fields are lost. After an error it puts the batch back, rests
// for 60 s, and then sends it with the records that came meanwhile.
import winston from "winston"
import LokiTransport from "winston-loki"
import { paced, report, service, url, waitFor } from "./common.mjs"

const json = process.env.INTEROP_JSON === "1"
const transport = new LokiTransport({
	host: url,
	json,
	interval: 0.2,
	replaceTimestamp: false,
	gracefulShutdown: false,
	timeout: 20000,
	labels: { service_name: service },
	format: winston.format.printf((info) => info.message),
})
transport.level = "debug"
const log = winston.createLogger({ level: "debug", transports: [transport] })
for await (const r of paced()) {
	log.log({ level: r.level, message: r.msg, timestamp: r.ms, mark: r.mark, n: r.n })
}
// Its own flush resolves when a batch has failed, too.
const { batcher } = transport
await waitFor(() => batcher.batchesSending === 0 && batcher.batch.streams.length === 0)
await transport.close()
report(null)
