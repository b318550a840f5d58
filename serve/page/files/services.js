// The choice of services.

import { h } from "./preact.js"

/** @param {Props} props */
export function Services({ view }) {
	return h("button", { type: "button", "aria-haspopup": "dialog" }, "Services: ", view.services.length ? view.services.join(", ") : "all")
}
