// The first page, and what stands behind it.
import assert from "node:assert/strict"
import { median } from "../scene.mjs"

export default [
	{
		name: "start: the last hour of all services, at once",
		async run({ ui, facts }) {
			await ui.open()
			await ui.totals(facts.records)
			const rows = await ui.some(10)
			assert.match(
				await ui
					.button(/^Time|Last hour/)
					.or(ui.page.getByRole("combobox", { name: "Time" }))
					.first()
					.innerText(),
				/Last hour/,
			)
			// The newest record is first.
			assert.equal(rows[0].index, 1)
			assert.ok(rows[0].text.includes(new Date(Date.parse(facts.to) - 1000).toISOString().slice(11, 19)), rows[0].text)
			assert.equal(ui.fragment(), "", "the first page needs no fragment")
		},
	},
	{
		name: "start: first rows within a second over 100,000 records",
		alone: true,
		bare: true,
		async run(scene) {
			// Others keep the machine busy now and then, so it has a few tries.
			const all = []
			for (let round = 0; round < 4; round++) {
				const took = []
				for (let n = 0; n < 3; n++) {
					const ui = await scene.fresh()
					const begun = performance.now()
					await ui.page.goto(scene.url + "/", { waitUntil: "commit" })
					await ui.rows.first().waitFor()
					took.push(Math.round(performance.now() - begun))
					await ui.page.context().close()
				}
				all.push(took)
				if (median(took) < 1000) break
			}
			scene.figures.firstRows = all
			assert.ok(median(all.at(-1)) < 1000, `first rows after ${JSON.stringify(all)} ms`)
		},
	},
]
