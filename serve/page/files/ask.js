// Hooks for questions to the server, and words in place of their answers. A question that is asked
// anew gives up the one before.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"

/**
 * Asks whenever the key changes; "" asks nothing.
 * @template T
 * @param {string} key
 * @param {(signal: AbortSignal) => Promise<T>} ask
 * @returns {Answer<T>}
 */
export function useAnswer(key, ask) {
	const [state, set] = useState(/** @type {Answer<T>} */ ({ loading: key !== "", stale: false }))
	useEffect(() => {
		if (!key) return set({ loading: false, stale: false })
		const giveUp = new AbortController()
		set((old) => ({ value: old.value, loading: true, stale: old.value !== undefined }))
		ask(giveUp.signal).then(
			(value) => giveUp.signal.aborted || set({ value, loading: false, stale: false }),
			// What was there before a question that was refused stays.
			(error) =>
				giveUp.signal.aborted ||
				set((old) => ({
					error,
					loading: false,
					...(refused(error) ? { value: old.value, stale: true } : { stale: false }),
				})),
		)
		return () => giveUp.abort()
	}, [key])
	return state
}

/**
 * Reports how a part of the page fares, for the bar of what is missing and the foot.
 * @param {Reporter} report
 * @param {string} part
 * @param {Answer<Outcome>} answer
 */
export function useReport(report, part, { value, error, loading }) {
	useEffect(() => report(part, { outcome: loading ? undefined : value, error, loading }), [value, error, loading])
}

/** Keeps the newest value at hand for callbacks. @template T @param {T} value */
export function useNewest(value) {
	const ref = useRef(value)
	ref.current = value
	return ref
}

/** A question that the server refused: nothing was read. @param {Error} [error] */
export const refused = (error) => /** @type {any} */ (error)?.status === 400

/** The words of an error, where the answer would be; the search line has those of a refusal. @param {{error?: Error, value?: any}} answer */
export const failed = ({ error, value }) =>
	error && !(value && refused(error))
		? h("p", { role: "alert", class: "mistake" }, refused(error) ? "Not asked." : error.message)
		: undefined

/** What stands in place of an answer. @param {{value?: any, error?: Error}} answer */
export const instead = (answer) => failed(answer) ?? (answer.value ? null : h("p", { class: "soon" }, "Loading…"))
