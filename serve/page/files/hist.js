// The histogram: numbers of records over time, by level, service or fields.

import { h } from "./preact.js"
import * as source from "./source.js"
import { useAnswer, useReport } from "./ask.js"
import { levels, some } from "./format.js"

/** @param {Props} props */
export function Histogram({ view, question, asked, report, shared }) {
	const answer = useAnswer(`${asked} ${view.split}`, (signal) => source.histogram(question, { buckets: 120, split: view.split }, signal))
	useReport(report, "histogram", answer)
	const buckets = answer.value?.buckets ?? [], most = Math.max(1, ...buckets.map((b) => b.total)), total = buckets.reduce((n, b) => n + b.total, 0)
	shared.total = answer.value ? total : -1
	const from = Date.parse(question.from), width = Date.parse(question.to) - from
	return h("section", { class: "hist", "aria-label": "Histogram" },
		answer.error ? h("p", { role: "alert" }, answer.error.message) : null,
		h("svg", { role: "img", "aria-label": some(total, "record"), viewBox: "0 0 1200 80", preserveAspectRatio: "none" },
			buckets.map((b) => {
				let y = 80
				const x = (1200 * (Date.parse(b.t) - from)) / width
				return levels.filter((l) => b.counts[l]).reverse().map((l) => h("rect", { key: b.t + l, class: l, x, width: 8, y: (y -= (78 * b.counts[l]) / most), height: (78 * b.counts[l]) / most }))
			})),
		h("p", { class: "total" }, answer.value ? some(total, "record") : " "))
}
