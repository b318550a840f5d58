// The question of the view elsewhere: as a command, a link, a file.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { permalink } from "./state.js"
import { logqlOf } from "./logql.js"
import { Dialog } from "./dialog.js"
import { some } from "./format.js"

/** A text as one word of sh. @param {string} text */
const word = (text) => /^[\w%+,./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** @type {Record<string, string>} */
const flags = { from: "--from", to: "--to", level: "--level", text: "--fixed", without: "--without", expr: "--regexp", where: "--where", logql: "--logql" }

/**
 * The commands that print the lines of the question, in the order of the list, all of the range.
 * @param {Question} question
 * @param {{oldest: boolean, token: boolean, at: string}} how at: the address of the page
 */
export function commands(question, { oldest, token, at }) {
	const server = new URL(".", at.replace(/[?#].*/, "")).href, url = new URL(server + "api/v1/records?" + source.params(question, { order: oldest ? "asc" : "desc", limit: 0 }))
	const { protocol, hostname } = url, line = ["logquery", "read"]
	for (const [key, value] of url.searchParams) {
		if (key === "service") line.push(word(value))
		else if (flags[key]) line.push(flags[key] + "=" + word(value))
		else if (key === "fold") line.push("-i")
	}
	line.push(...(oldest ? [] : ["-r"]), "-n", "0", "-o", "json", "--server=" + word(server.replace(/\/$/, "")))
	if (token && protocol === "http:" && !/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname)) line.push("--plain-http")
	return { logquery: line.join(" "), curl: `curl -fsS ${token ? '-H "Authorization: Bearer $TOKEN" ' : ""}'${url.href.replaceAll("'", "%27")}'` }
}

/** Copies a text, also where the page has no right to the clipboard. @param {string} text @param {HTMLElement | null} [shown] that has it */
export async function copy(text, shown) {
	try {
		await navigator.clipboard.writeText(text)
		return true
	} catch {
		const area = document.createElement("textarea"), range = document.createRange(), before = /** @type {HTMLElement | null} */ (document.activeElement)
		area.value = text
		;(shown?.parentElement ?? document.body).append(area)
		area.select()
		const done = document.execCommand("copy")
		area.remove()
		before?.focus()
		if (!done && shown) {
			range.selectNodeContents(shown)
			getSelection()?.removeAllRanges()
			getSelection()?.addRange(range)
		}
		return done
	}
}

/** @param {{text: () => string, shown?: {current: HTMLElement | null}, children: any, title?: string}} props */
function CopyButton({ text, shown, children, title }) {
	const [said, say] = useState("")
	useEffect(() => {
		const timer = setTimeout(() => say(""), 2000)
		return () => clearTimeout(timer)
	}, [said])
	return h("button", { type: "button", title, onClick: async () => say(await copy(text(), shown?.current) ? "Copied" : "Press Ctrl+C") }, said || children, h("span", { role: "status", class: "hidden" }, said))
}

/** @param {Props} props */
export function Command(props) {
	const [open, setOpen] = useState(false)
	return [h("button", { type: "button", "aria-haspopup": "dialog", onClick: () => setOpen(true) }, "Command"), h(Dialog, { open, close: () => setOpen(false), label: "Command", children: open && h(Texts, props) })]
}

/** @param {Props} props */
function Texts({ view, question, who, mistake }) {
	const token = !!who?.id, { logquery, curl } = commands(question, { oldest: view.oldest, token, at: location.href }), logql = logqlOf(view, question)
	const nul = /\0/.test(logquery) ? ["No command can hold a NUL; use curl."] : []
	return [
		mistake ? h("p", { class: "mistake" }, "The search line has a mistake; this is the question before it.") : null,
		h("p", { class: "dim" }, "The same records in the same order: all of the range, and not only those that the list has.", question.to ? "" : " The range has no end, so newer ones come too."),
		h(One, { name: "logquery", text: logquery, notes: [...nul, ...(token ? ["BLOBTAIL_TOKEN_FILE names the file with your token, or BLOBTAIL_TOKEN has it."] : [])] }),
		h(One, { name: "curl", text: curl, notes: ["It ends with 18 if records are missing.", ...(token ? ["TOKEN has your token, as id.secret."] : [])] }),
		h(One, { name: "LogQL", text: logql.text, notes: logql.notes }),
	]
}

/** @param {{name: string, text: string, notes: string[]}} props */
function One({ name, text, notes }) {
	const pre = useRef(/** @type {HTMLElement | null} */ (null))
	return h("section", null, h("div", { class: "head" }, h("h3", null, name), h(CopyButton, { text: () => text, shown: pre, children: "Copy", title: "Copy " + name })),
		h("pre", { ref: pre, tabIndex: 0, "data-command": name.toLowerCase(), "aria-label": name }, text), notes.map((n) => h("p", { key: n, class: "dim" }, n)))
}

/** @param {Props} props */
export function CopyLink({ view, range, shared }) {
	shared.offer("link", () => /** @type {HTMLElement | null} */ (document.querySelector("#link button"))?.click())
	return h("span", { id: "link" }, h(CopyButton, { text: () => permalink(view, range), title: "A link with the times of now, which do not move", children: "Copy link" }))
}

/** @param {Props} props */
export function Download({ question, view, shared }) {
	const [open, setOpen] = useState(false), { oldest } = view
	const link = (/** @type {string} */ name, /** @type {string[] | undefined} */ fields) => h("a", { href: source.download(question, { oldest, fields }), download: "", onClick: () => setOpen(false) }, name)
	return h("span", { class: "menu", onKeyDown: (/** @type {KeyboardEvent} */ e) => e.key === "Escape" && open && (setOpen(false), e.stopPropagation()), onFocusOut: (/** @type {any} */ e) => e.currentTarget.contains(e.relatedTarget) || setOpen(false) },
		h("button", { type: "button", "aria-expanded": open, onClick: () => setOpen(!open) }, "Download"),
		open ? h("div", { tabIndex: -1 }, link("NDJSON", undefined), link("CSV", ["ts", "level", "service", "msg", ...view.columns]),
			h("p", { class: "dim" }, shared.total < 0 ? "All records of the question." : `All ${some(shared.total, "record")} of the question.`, " If some cannot be read, the browser says that the download failed: ask again, and trust no part of a file.")) : null)
}
