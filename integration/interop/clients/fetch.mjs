// A program sends the lines of pino to /ingest with fetch. It sends the same body again
// until it is answered.
import pino from "pino"
import { paced, report, service, sleep, url } from "./common.mjs"

let lines = []
let marks = []
let time
const log = pino(
	{ base: undefined, level: "trace", timestamp: () => `,"time":${time}` },
	{ write: (line) => lines.push(line) },
)
const believed = []
async function send() {
	const body = lines.join("")
	const these = marks
	lines = []
	marks = []
	for (let tries = 0; tries < 20; tries += 1) {
		try {
			const resp = await fetch(`${url}/ingest/${service}`, {
				method: "POST",
				body,
				headers: { "Content-Type": "application/x-ndjson" },
				signal: AbortSignal.timeout(20000),
			})
			const answer = await resp.json()
			if (resp.ok && answer.accepted === these.length) {
				believed.push(...these)
				return
			}
			console.error(resp.status, JSON.stringify(answer))
		} catch (err) {
			console.error(String(err))
		}
		await sleep(500)
	}
}
for await (const r of paced()) {
	time = r.ms
	log[r.level]({ mark: r.mark, n: r.n }, r.msg)
	marks.push(r.mark)
	if (marks.length >= 50) await send()
}
await send()
report(believed)
