// The keys of the page, in one table, which the help shows. Parts offer what a key does by name.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import { useNewest } from "./ask.js"
import { Dialog } from "./dialog.js"

// Keys, the names of what they do, and what that is.
const table = `/|search|search
j k ArrowDown ArrowUp|next previous next previous|next, previous record
Enter|open|open the record
Escape|close|close what is open
c|context|context of the record
e E|error+ error-|next, previous error
w W|warn+ warn-|next, previous warning
f|live|live on or off
Space|pause|pause live
[ ]|earlier later|earlier, later range
z|zoomOut|zoom out
t|time|choose the time
s|services|choose services
1 2 3 4 5 6 7|level1 level2 level3 level4 level5 level6 level7|leave a level of the legend out, or take it back
y|copy|copy the record
l|link|copy the link
?|keys|these keys`
	.split("\n")
	.map((row) => row.split("|"))
const names = new Map(table.flatMap(([keys, names]) => keys.split(" ").map((key, i) => [key, names.split(" ")[i]])))

/**
 * Offers functions by name, as long as the part is there.
 * @param {Shared} shared
 * @param {Record<string, () => void>} calls
 */
export function useOffers(shared, calls) {
	for (const name in calls) shared.offer(name, calls[name])
	useEffect(
		() => () => {
			for (const name in calls) shared.offer(name, () => {})
		},
		[],
	)
}

/** @param {Props} props */
export function useKeys(props) {
	const newest = useNewest(props),
		{ shared } = props
	shared.offer("live", () =>
		newest.current.set(newest.current.view.live ? { live: false } : { live: true, tab: "records", around: "" }),
	)
	shared.offer("close", () =>
		newest.current.view.around
			? newest.current.set({ around: "" })
			: newest.current.view.sel && newest.current.set({ sel: "" }),
	)
	useEffect(() => {
		const on = (/** @type {any} */ e) => {
			// Tabs have their neighbours.
			if (/^Arrow(Left|Right)$/.test(e.key) && e.target.role === "tab")
				e.target[e.key === "ArrowLeft" ? "previousSibling" : "nextSibling"]?.focus()
			const name = names.get(e.key === " " ? "Space" : e.key),
				in_ = (/** @type {string} */ what) => e.target.closest(what)
			if (
				!name ||
				e.defaultPrevented ||
				e.ctrlKey ||
				e.metaKey ||
				e.altKey ||
				e.isComposing ||
				document.querySelector("dialog[open]") ||
				in_("input:not([type=checkbox], [type=radio]), select, textarea")
			)
				return
			// Controls keep the keys that they know.
			if (
				/^(Enter| |Arrow.*)$/.test(e.key) &&
				in_("button, a, summary, input, [tabindex]:not([role=row], [role=grid])")
			)
				return
			e.preventDefault()
			shared.act(name)
		}
		addEventListener("keydown", on)
		return () => removeEventListener("keydown", on)
	}, [])
	useFocus()
}

/** If the element with the focus goes, one near its place gets it: the current row, the chosen tab, or a button. */
function useFocus() {
	useEffect(() => {
		/** @type {any[]} */
		let path = []
		const places = ['[role=row][tabindex="0"]', "[role=tab][aria-selected=true]", "button"],
			lost = () => document.activeElement === document.body
		const into = (/** @type {Event} */ e) => (path = e.composedPath()),
			out = (/** @type {any} */ e) => setTimeout(() => lost() && e.target.isConnected && (path = []))
		const seen = new MutationObserver(() => {
			if (!lost() || !path[0] || path[0].isConnected) return
			const near = path.find((e) => e.isConnected && e.querySelector("" + places))
			if (near)
				places
					.flatMap((p) => [...near.querySelectorAll(p)].reverse())
					.find((e) => e.checkVisibility())
					?.focus()
		})
		addEventListener("focusin", into)
		addEventListener("focusout", out)
		seen.observe(document.body, { childList: true, subtree: true })
	}, [])
}

/** @param {Props} props */
export function KeysHelp({ shared }) {
	const [open, setOpen] = useState(false)
	shared.offer("keys", () => setOpen(true))
	return [
		h("button", { "aria-label": "Keys", "aria-haspopup": "dialog", onClick: () => setOpen(true) }, "?"),
		h(
			Dialog,
			{ open, close: () => setOpen(false), label: "Keys" },
			h(
				"table",
				null,
				table.map(([keys, , text]) =>
					h(
						"tr",
						{ key: keys },
						h(
							"th",
							{ scope: "row" },
							keys
								.replaceAll("Arrow", "")
								.split(" ")
								.map((k) => [h("kbd", null, k), " "]),
						),
						h("td", null, text),
					),
				),
			),
		),
	]
}
