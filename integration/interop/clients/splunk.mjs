// winston-splunk-httplogger: Splunk HEC, one event a request, as it does by default.
import winston from "winston"
import SplunkStreamEvent from "winston-splunk-httplogger"
import { at, paced, report, service, url, waitFor } from "./common.mjs"

const transport = new SplunkStreamEvent({
	level: "debug",
	exitOnError: false,
	splunk: {
		token: "interop.secret",
		url,
		maxRetries: 8,
		source: service,
		sourcetype: service,
		index: service,
		eventFormatter: (message, severity) => ({
			level: severity,
			message: message.msg,
			mark: message.meta.mark,
			n: message.meta.n,
		}),
		...(process.env.INTEROP_TEXT && {
			eventFormatter: (message, level) => JSON.stringify({ level, message: message.msg, ...message.meta }),
		}),
	},
})
// The client does not hand errors that the server answers to the caller of send, only to
// this function.
const failed = new Set()
transport.server.error = (err, context) => {
	console.error(String(err))
	for (const m of JSON.stringify(context).match(/mark-\d{6}/g) ?? []) failed.add(m)
}
const believed = []
let open = 0
const plain = transport.server.send.bind(transport.server)
transport.server.send = (payload, done) => {
	open += 1
	const { mark } = payload.message.meta
	plain(payload, (err, ...rest) => {
		open -= 1
		if (err) console.error(String(err))
		else believed.push(mark)
		done(err, ...rest)
	})
}
const log = winston.createLogger({ level: "debug", transports: [transport] })
for await (const r of paced()) {
	// winston hands a record over when the one before is answered.
	await new Promise((done) => {
		transport.once("logged", done)
		at(r, () => log.log({ level: r.level, message: r.msg, mark: r.mark, n: r.n }))
	})
}
await waitFor(() => open === 0)
report(believed.filter((m) => !failed.has(m)))
