// The keys of the page, in one table, which the help shows.

import { h } from "./preact.js"
import { useEffect } from "./hooks.js"
import { useNewest } from "./ask.js"

/** @type {{keys: string[], text: string, run: (props: Props) => void}[]} */
const table = [
	{ keys: ["/"], text: "search", run: ({ shared }) => shared.act("search") },
	{ keys: ["f"], text: "live", run: ({ view, set }) => set({ live: !view.live }) },
	{ keys: ["Escape"], text: "close", run: ({ view, set }) => view.sel && set({ sel: "" }) },
]

/** @param {Props} props */
export function useKeys(props) {
	const newest = useNewest(props)
	useEffect(() => {
		const on = (/** @type {KeyboardEvent} */ e) => {
			const target = /** @type {HTMLElement} */ (e.target)
			if (e.ctrlKey || e.metaKey || e.altKey || target.matches("input, select, textarea")) return
			const found = table.find((row) => row.keys.includes(e.key))
			if (!found) return
			e.preventDefault()
			found.run(newest.current)
		}
		addEventListener("keydown", on)
		return () => removeEventListener("keydown", on)
	}, [])
}

/** @param {Props} props */
export function KeysHelp(props) {
	return null
}
