// The official client of Elasticsearch: its bulk helper, or with INTEROP_ONE a document a request.
import { Client } from "@elastic/elasticsearch"
import { paced, report, service, url } from "./common.mjs"

const client = new Client({ node: url, maxRetries: 8, requestTimeout: 20000 })
const dropped = new Set()
const all = []
async function* documents() {
	for await (const r of paced()) {
		all.push(r.mark)
		yield { "@timestamp": new Date(r.ms).toISOString(), level: r.level, message: r.msg, mark: r.mark, n: r.n }
	}
}
let failed = false
try {
	if (process.env.INTEROP_ONE) {
		for await (const document of documents())
			await client.index({ index: service, document }).catch(() => dropped.add(document.mark))
	} else
		await client.helpers.bulk({
			datasource: documents(),
			flushBytes: 10000,
			flushInterval: 1000,
			concurrency: 2,
			retries: 8,
			wait: 500,
			onDocument: () => ({ index: { _index: service } }),
			onDrop: (d) => {
				dropped.add(d.document.mark)
				console.error("dropped", JSON.stringify(d.error), d.status)
			},
		})
} catch (err) {
	failed = true // the helper stops, and does not tell which documents were taken
	console.error(String(err))
}
report(failed ? null : all.filter((m) => !dropped.has(m)))
