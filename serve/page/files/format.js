// Texts of times, numbers and durations, as people read them. Times of records have nanoseconds,
// which a Date has not: they stay texts or BigInts.

/** @param {number} n */
export const count = (n) => n.toLocaleString("en-US")

/**
 * The number with its noun: "1 record", "2,000 records".
 * @param {number} n
 * @param {string} noun
 */
export const some = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`

/** @param {number} n */
export function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"]
	let i = 0
	for (; n >= 1024 && i < units.length - 1; i++) n /= 1024
	return `${i && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`
}

const lengths = /** @type {const} */ ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 })

/**
 * The ms of a duration such as 15m or 1d12h; NaN if it is none.
 * @param {string} text
 */
export function duration(text) {
	if (!/^(\d+(\.\d+)?(ms|[smhdw]))+$/.test(text)) return NaN
	let sum = 0
	for (const [, n, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g))
		sum += Number(n) * lengths[/** @type {keyof typeof lengths} */ (unit)]
	return sum
}

/** @param {number} ms */
export function span(ms) {
	for (const unit of /** @type {const} */ (["w", "d", "h", "m", "s"])) {
		if (ms >= lengths[unit] && ms % lengths[unit] === 0 && (unit !== "w" || ms % lengths.w === 0))
			return `${ms / lengths[unit]}${unit}`
	}
	return `${ms}ms`
}

const pad = (/** @type {number} */ n, width = 2) => String(n).padStart(width, "0")

/**
 * A time of a record (RFC 3339, UTC, nine digits) in the zone of the view.
 * @param {string} stamp
 * @param {boolean} utc
 * @param {{day?: boolean, digits?: number}} [how] with the day; so many digits of a second (3)
 */
export function time(stamp, utc, { day = false, digits = 3 } = {}) {
	const date = new Date(stamp),
		get = utc ? "getUTC" : "get"
	if (isNaN(date.getTime())) return stamp
	const call = (/** @type {string} */ name) => /** @type {any} */ (date)[get + name]()
	const fraction = (/\.(\d+)/.exec(stamp)?.[1] ?? "").padEnd(9, "0").slice(0, digits)
	const clock = `${pad(call("Hours"))}:${pad(call("Minutes"))}:${pad(call("Seconds"))}${digits ? "." + fraction : ""}`
	return day ? `${call("FullYear")}-${pad(call("Month") + 1)}-${pad(call("Date"))} ${clock}` : clock
}

/**
 * A time in ms since 1970 as the API has it.
 * @param {number} ms
 */
export const stamp = (ms) => new Date(ms).toISOString().replace(/\.(\d+)Z/, (_, f) => "." + f.padEnd(9, "0") + "Z")

/**
 * The ms since 1970 of a time of the API.
 * @param {string} text
 */
export const ms = (text) => Date.parse(text)

export const levels = ["critical", "error", "warn", "info", "debug", "trace", "other"]

/** Whether list and record come one after the other. */
export const narrow = () => matchMedia("(max-width: 720px)").matches
