// What this browser keeps beyond the page: small settings, and never a record or a token.

/** @param {string} key @param {any} [missing] */
export function kept(key, missing) {
	try {
		return JSON.parse(localStorage.getItem(key) ?? "null") ?? missing
	} catch {
		return missing // no storage
	}
}

/** @param {string} key @param {unknown} value */
export function keep(key, value) {
	try {
		localStorage.setItem(key, JSON.stringify(value))
	} catch {
		/* it lasts as long as the page */
	}
}
