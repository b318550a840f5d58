// The keys of the page, in one table, which the help shows. A part offers what a key does by
// shared.offer(name, call).

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import { useNewest } from "./ask.js"
import { Dialog } from "./dialog.js"

/** Keys, what they do, and the name of the offer for each of them. */
const table = /** @type {[string, string, string][]} */ ([
	["/", "go to the search line", "search"],
	["j k ArrowDown ArrowUp", "next or previous record", "next previous next previous"],
	["Enter", "open the record", "open"],
	["Escape", "close what is open", "close"],
	["c", "context of the record", "context"],
	["e E", "next or previous error", "error+ error-"],
	["w W", "next or previous warning", "warn+ warn-"],
	["f", "live on or off", "live"],
	["Space", "pause live", "pause"],
	["[ ]", "earlier or later range", "earlier later"],
	["z", "zoom out", "zoomOut"],
	["t", "choose the time", "time"],
	["s", "choose services", "services"],
	["1 2 3 4 5 6 7", "a level on or off: critical, error, warn, info, debug, trace, other", "level1 level2 level3 level4 level5 level6 level7"],
	["y", "copy the record", "copy"],
	["l", "copy the link", "link"],
	["?", "these keys", "keys"],
])
const names = new Map(table.flatMap(([keys, , offers]) => keys.split(" ").map((key, i) => [key, offers.split(" ")[i]])))

/** @param {Props} props */
export function useKeys(props) {
	const newest = useNewest(props), { shared } = props
	shared.offer("live", () => newest.current.set({ live: !newest.current.view.live }))
	shared.offer("close", () => newest.current.view.sel && newest.current.set(newest.current.view.around ? { around: "" } : { sel: "" }))
	useEffect(() => {
		const on = (/** @type {KeyboardEvent} */ e) => {
			const target = /** @type {HTMLElement} */ (e.target), name = names.get(e.key === " " ? "Space" : e.key), own = e.key === " " || e.key.length > 1
			// Controls keep the keys that they know.
			if (!name || e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.isComposing || document.querySelector("dialog[open]")) return
			if (target.matches("input:not([type=checkbox], [type=radio]), select, textarea") || (own && e.key !== "Escape" && target.closest("button, a, summary, input, svg, [role=tab], [role=option]"))) return
			e.preventDefault()
			shared.act(name)
		}
		addEventListener("keydown", on)
		return () => removeEventListener("keydown", on)
	}, [])
}

/** @param {Props} props */
export function KeysHelp({ shared }) {
	const [open, setOpen] = useState(false)
	shared.offer("keys", () => setOpen(true))
	return [
		h("button", { type: "button", "aria-label": "Keys", title: "Keys (?)", "aria-haspopup": "dialog", onClick: () => setOpen(true) }, "?"),
		h(Dialog, { open, close: () => setOpen(false), label: "Keys" }, h("table", null, h("tbody", null, table.map(([keys, text]) =>
			h("tr", { key: keys }, h("th", { scope: "row" }, keys.replaceAll("Arrow", "").split(" ").map((k) => [h("kbd", { key: k }, { Down: "↓", Up: "↑" }[k] ?? k), " "])), h("td", null, text)))))),
	]
}
