// The patterns of messages: templates of the view, and what is new against another window.

import { h } from "./preact.js"

/** @param {Props} props */
export function Patterns(props) {
	return h("p", null, "")
}
