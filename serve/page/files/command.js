// The question of the view elsewhere: as a command, a link, a file.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import * as source from "./source.js"
import { instead, useAnswer } from "./ask.js"
import { permalink } from "./state.js"
import { Dialog, Menu } from "./dialog.js"
import { some } from "./format.js"
import { hidden } from "./rows.js"

/** @type {Fn} */
const octal = (c) => [...new TextEncoder().encode(c)].map((b) => "\\0" + b.toString(8).padStart(3, "0")).join("")

/** @type {Fn} */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * One word of sh. A terminal obeys control characters also within quotes, and other hidden ones
 * deceive who reads the command, so printf makes them.
 * @type {Fn}
 */
const word = (text) =>
	/^[\w%+,./:=@-]+$/.test(text)
		? text
		: text.search(hidden) < 0
			? quoted(text)
			: `"$(printf %b ${quoted(text.replaceAll("\\", "\\\\")).replace(hidden, octal)})"`

/**
 * Commands that print the records of the question, in the order of the list.
 * @param {Question} question
 * @param {{search: string, oldest: boolean, token: boolean, page: string}} how search: its lines as one; page: its address
 */
export function commands(question, { search, oldest, token, page }) {
	const query = source.params(question, { order: oldest ? "asc" : "desc", limit: 0 }),
		server = new URL(".", page.split(/[?#]/)[0]),
		line = ["logquery read"]
	// No service begins with a dash, but a flag does.
	for (const [key, value] of query)
		if (!/^(order|limit|q|parse)$/.test(key))
			line.push(key === "service" ? word(value.replace(/^-/, "?")) : key === "fold" ? "-i" : `--${key}=${word(value)}`)
	if (search) line.push("--search=" + word(search))
	line.push(`-n 0 ${oldest ? "" : "-r "}-o json --server=${word(server.href.replace(/\/$/, ""))}`)
	if (token && server.protocol === "http:" && !/^(localhost|127[.\d]+|\[::1\])$/.test(server.hostname))
		line.push("--plain-http")
	return {
		lossy: [search, question.logql].some((v) => /\0|\n$/.test(v)),
		logquery: line.join(" "),
		curl: `curl -fsS ${token ? '-H "Authorization: Bearer $TOKEN" ' : ""}'${server.href.replaceAll("'", "%27")}api/v1/records?${query}'`,
	}
}

/** Copies a text, also where a page has no right to the clipboard; false: it is not copied. @param {string} text */
export async function copy(text) {
	try {
		await navigator.clipboard.writeText(text)
		return true
	} catch {
		const area = document.createElement("textarea"),
			before = /** @type {HTMLElement} */ (document.activeElement)
		area.value = text
		;(document.querySelector("dialog[open]") ?? document.body).append(area)
		area.select()
		const done = document.execCommand("copy")
		area.remove()
		before.focus()
		return done
	}
}

/** @param {{text: () => string, label: string, id?: string, name?: string}} props name: for readers of the screen, if the label is a sign */
export function Copy({ text, label, id, name }) {
	const [said, say] = useState("")
	useEffect(() => {
		const timer = setTimeout(say, 2000, "")
		return () => clearTimeout(timer)
	}, [said])
	return h(
		"button",
		{
			id,
			"aria-label": name,
			title: name,
			onClick: () => copy(text()).then((done) => say(done ? "Copied" : "Not copied")),
			"aria-live": "polite",
		},
		said || label,
	)
}

/** @param {Props} props */
export function CopyLink({ view, range, shared }) {
	shared.offer("link", () => document.getElementById("link")?.click())
	return h(Copy, { id: "link", label: "Copy link", text: () => permalink(view, range) })
}

/** @param {Props} props */
export function Command(props) {
	const [open, setOpen] = useState(false)
	return [
		h("button", { "aria-haspopup": "dialog", onClick: () => setOpen(true) }, "Command"),
		h(Dialog, { open, close: () => setOpen(false), label: "Command" }, h(Texts, props)),
	]
}

/** @param {Props} props */
function Texts({ view, question, who, asked }) {
	const answer = useAnswer(asked, (signal) => source.parse(source.params(question), signal)),
		said = answer.value
	if (!said) return instead(answer)
	if (said.mistake) return h("p", { class: "mistake" }, "The search has a mistake, so no command asks it.")
	const token = !!who?.id,
		{ logquery, curl, lossy } = commands(question, {
			search: said.line,
			oldest: view.oldest,
			token,
			page: location.href,
		})
	return [
		h(
			"p",
			{ class: "dim" },
			"All records of the range in the order of the list, also those that the list has not.",
			question.to ? "" : " The range has no end: newer ones come too.",
		),
		[
			[
				"logquery",
				logquery,
				lossy && "No command can hold a NUL, or a line end as the last character: use curl.",
				token && "BLOBTAIL_TOKEN_FILE names the file with your token.",
			],
			["curl", curl, "It ends with 18 if records are missing.", token && "TOKEN is your token, as id.secret."],
			["LogQL", said.logql, ...(said.lacks ?? [])],
		].map(([name, text, ...notes]) =>
			h(
				"section",
				{ key: name },
				h("h3", null, name, " ", h(Copy, { text: () => String(text), label: "Copy" })),
				h("pre", { tabIndex: 0, "data-command": String(name).toLowerCase() }, text),
				h("p", { class: "dim" }, notes.filter(Boolean).join(" ")),
			),
		),
	]
}

/** @param {Props} props */
export function Download({ question, view, shared }) {
	const link = (/** @type {string} */ name, /** @type {Texts} */ ...fields) =>
		h(
			"a",
			{
				download: "",
				href: source.download(question, { oldest: view.oldest, fields: fields.length ? fields : undefined }),
			},
			name,
		)
	const inside = () => [
		link("NDJSON"),
		link("CSV", "ts", "level", "service", "msg", ...view.columns),
		h(
			"p",
			{ class: "dim" },
			`CSV has ts, level, service, msg${view.columns.map((c) => ", " + c).join("")}. Columns of the list are in it too.`,
		),
		h(
			"p",
			{ class: "dim" },
			shared.total < 0 ? "All records" : `All ${some(shared.total, "record")}`,
			" of the question. If some cannot be read, the browser says that the download failed.",
		),
	]
	return h(Menu, { name: "Download", class: "files", inside })
}
