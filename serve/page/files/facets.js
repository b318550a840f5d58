// The fields of the newest records, with their most frequent values.

import { h } from "./preact.js"
import * as source from "./source.js"
import { useAnswer, useReport } from "./ask.js"
import { termFor } from "./search.js"
import { count, some } from "./format.js"

/** @param {Props} props */
export function Facets({ view, set, question, asked, report }) {
	const answer = useAnswer(asked, (signal) => source.facets(question, { top: 10 }, signal))
	useReport(report, "fields", answer)
	const add = (/** @type {string} */ text) => set({ chips: [...view.chips, { text, off: false }] })
	return h("aside", { class: "facets", "aria-label": "Fields" },
		answer.value ? h("p", null, `of the newest ${some(answer.value.basis.records, "record")}`) : null,
		answer.value?.fields.map((f) => h("details", { key: f.name, open: f.name === "level" || f.name === "service" }, h("summary", null, f.name, " ", count(f.distinct)),
			h("ul", null, f.values.map((v) => h("li", { key: v.value }, h("button", { type: "button", "aria-label": `Filter for ${f.name}=${v.value}`, onClick: () => add(termFor(f.name, v.value)) }, v.value || "(empty)"), " ", count(v.count)))))))
}
