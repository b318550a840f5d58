// All clients here share the records to send, the clock, and the report.
//
// INTEROP_URL      base URL of the ingester
// INTEROP_RECORDS  file of NDJSON: {mark, n, nano, ms, level, msg}
// INTEROP_SERVICE  service that the records belong to
// INTEROP_PAUSE    ms to wait after each 20 records
// INTEROP_PATIENCE s to wait for the last answers
import { readFileSync } from "node:fs"
import { setImmediate, setTimeout as sleep } from "node:timers/promises"

export const url = process.env.INTEROP_URL
export const service = process.env.INTEROP_SERVICE
export const patience = Number(process.env.INTEROP_PATIENCE ?? 30) * 1000
const pause = Number(process.env.INTEROP_PAUSE ?? 0)

export const records = readFileSync(process.env.INTEROP_RECORDS, "utf8")
	.trim()
	.split("\n")
	.map((l) => JSON.parse(l))

// paced yields the records, and lets the client send meanwhile.
export async function* paced() {
	for (const [i, r] of records.entries()) {
		yield r
		if (i % 20 === 19) await (pause > 0 ? sleep(pause) : setImmediate())
	}
}

// at runs a call with the clock at the time of a record. Loggers that stamp their records
// themselves then give each its own time.
export function at(r, call) {
	const now = Date.now
	Date.now = () => r.ms
	try {
		return call()
	} finally {
		Date.now = now
	}
}

// waitFor waits until done, but no longer than the patience of the test.
export async function waitFor(done) {
	const end = Date.now() + patience
	while (!done() && Date.now() < end) await sleep(20)
}

// countFetches counts the calls of fetch that are not answered yet, for clients that do not
// tell when they are done.
export function countFetches() {
	const { fetch } = globalThis
	let open = 0
	globalThis.fetch = async (...args) => {
		open += 1
		try {
			return await fetch(...args)
		} finally {
			open -= 1
		}
	}
	return () => open
}

// report tells the test which records the client believes delivered: their marks, or null if it
// does not tell its caller.
export function report(believed) {
	process.stdout.write(`${JSON.stringify({ believed })}\n`, () => process.exit(0))
}

export { sleep }
