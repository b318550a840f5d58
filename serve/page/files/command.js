// The question of the view elsewhere: as a command, a link, a file.

import { h } from "./preact.js"
import * as source from "./source.js"
import { permalink } from "./state.js"

/** @param {Props} props */
export function Command({ question }) {
	return null
}

/** @param {Props} props */
export function CopyLink({ view, range }) {
	return h("button", { type: "button", onClick: () => navigator.clipboard?.writeText(permalink(view, range)) }, "Copy link")
}

/** @param {Props} props */
export function Download({ question, view }) {
	return h("a", { href: source.download(question, { oldest: view.oldest }), download: "" }, "NDJSON")
}
