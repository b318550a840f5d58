// A record as a row: the parts of its stored line that a row shows. A long line is not parsed for
// it.

import { ms } from "./format.js"

const shown = 4096

/** @type {WeakMap<Row, RowParts>} */
const known = new WeakMap()

/** @param {Row} row @returns {RowParts} */
export function partsOf(row) {
	let parts = known.get(row)
	if (!parts) known.set(row, (parts = read(row.line)))
	return parts
}

/** @param {string} line @returns {RowParts} */
function read(line) {
	if (line.length > 65536) return { ts: text(line, "ts"), level: text(line, "level"), service: text(line, "service"), msg: line.slice(0, shown), rest: "", long: true }
	const { ts = "", level = "", service = "", msg = "", ...rest } = JSON.parse(line)
	const fields = Object.entries(rest).map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join(" ")
	return { ts, level, service, msg: String(msg).slice(0, shown), rest: fields.slice(0, shown), long: msg.length > shown }
}

/** @param {string} line @param {string} name */
const text = (line, name) => new RegExp(`"${name}":"([^"]*)"`).exec(line.slice(0, 1024))?.[1] ?? ""

/** @param {Row} row */
export const nameOf = (row) => `${partsOf(row).service}/${row.id}`

export { ms }
