// A dialog over the page, a menu below a button, a line to type in. The browser holds the focus inside
// a dialog, ends it at Escape, and gives the focus back to the element that had it.

import { h } from "./preact.js"
import { useLayoutEffect, useRef, useState } from "./hooks.js"

/**
 * Children are made while it is open only. A click beside it closes it.
 * @param {{open: boolean, close: () => void, label: string, class?: string, children?: any}} props
 */
export function Dialog({ open, close, label, class: name, children }) {
	const box = useRef(/** @type {HTMLDialogElement | null} */ (null))
	useLayoutEffect(() => {
		const dialog = box.current
		if (!open || !dialog) return
		const before = /** @type {HTMLElement | null} */ (document.activeElement)
		dialog.showModal()
		return () => {
			dialog.close()
			before?.focus()
		}
	}, [open])
	if (!open) return null
	return h(
		"dialog",
		{
			ref: box,
			class: "dialog " + (name ?? ""),
			"aria-label": label,
			onCancel: (/** @type {Event} */ e) => {
				e.preventDefault()
				close()
			},
			onPointerDown: (/** @type {Event} */ e) => e.target === box.current && close(),
		},
		h(
			"div",
			{ class: "inside" },
			h(
				"div",
				{ class: "head" },
				h("h2", null, label),
				h("button", { "aria-label": "Close " + label, onClick: close }, "×"),
			),
			children,
		),
	)
}

/**
 * A button with a box below it, until Escape, or until the focus leaves both.
 * @param {{name: string, class: string, inside: () => any}} props
 */
export function Menu({ name, class: kind, inside }) {
	const [open, setOpen] = useState(false)
	return h(
		"span",
		{
			class: kind,
			onKeyDown: (/** @type {KeyboardEvent} */ e) => {
				if (e.key !== "Escape" || !open) return
				e.stopPropagation() // it closes nothing else
				setOpen(false)
			},
			onFocusOut: (/** @type {any} */ e) => e.currentTarget.contains(e.relatedTarget) || setOpen(false),
		},
		h("button", { "aria-expanded": open, onClick: () => setOpen(!open) }, name),
		open && h("div", { role: "group", "aria-label": name, tabIndex: -1 }, inside()),
	)
}

/** A line to type in. @param {string} name @param {string} value @param {(text: string) => void} change @param {Record<string, unknown>} [more] */
export const line = (name, value, change, more) =>
	h("input", {
		type: "text",
		"aria-label": name,
		value,
		onInput: (/** @type {any} */ e) => change(e.target.value),
		...more,
	})
