// seq-logging, the client of Seq for Node.
import * as seq from "seq-logging"
import { paced, report, service, url } from "./common.mjs"

const log = new seq.Logger({
	serverUrl: url,
	apiKey: "interop.secret",
	maxRetries: 8,
	onRemoteConfigChange: () => {},
	onError: (e) => console.error(String(e)),
})
for await (const r of paced()) {
	log.emit({
		timestamp: new Date(r.ms),
		level: r.level,
		messageTemplate: r.msg,
		properties: { mark: r.mark, n: r.n, Application: service },
	})
}
await log.flush()
report(null)
