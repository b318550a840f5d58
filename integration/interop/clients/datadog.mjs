// pino-datadog-transport with another host than Datadog's. A record is JSON in a field
// `message`, and its time is the field `date` in there.
import { client } from "@datadog/datadog-api-client"
import pino from "pino"
import datadog from "pino-datadog-transport"
import { paced, records, report, service, url, waitFor } from "./common.mjs"

let delivered = 0
let failed = 0
const stream = datadog({
	ddClientConf: {
		authMethods: { apiKeyAuth: "interop.secret" },
		baseServer: new client.BaseServerConfiguration(url, {}),
	},
	service,
	ddsource: "nodejs",
	ddtags: "env:test,team:shop",
	sendIntervalMs: 200,
	retries: 8,
	onDebug: (text) => {
		delivered += Number(/Sending (\d+) logs to Datadog completed/.exec(text)?.[1] ?? 0)
	},
	onError: (err, logs) => {
		failed += logs?.length ?? 0
		console.error(String(err))
	},
})
let time
const log = pino({ base: undefined, level: "trace", timestamp: () => `,"time":${time}` }, stream)
for await (const r of paced()) {
	time = r.ms
	log[r.level]({ mark: r.mark, n: r.n }, r.msg)
}
await waitFor(() => delivered + failed >= records.length)
report(null)
