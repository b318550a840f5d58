// Fields that the page makes of texts: by the operator's form, and by a stage of LogQL.
import assert from "node:assert/strict"
import { until } from "../scene.mjs"

const by = (ui) => ui.page.getByRole("combobox", { name: "Histogram by" })

/** Opens a field of the facets. */
const opened = async (ui, name) => {
	const value = ui.facets.getByRole("button", { name: `Show as column ${name}`, exact: true })
	if (!(await value.isVisible().catch(() => false))) await ui.facets.getByText(name, { exact: true }).first().click()
	return value
}

export default [
	{
		name: "forms: the fields of the operator's form are facets, columns, filters and by",
		world: "forms",
		async run({ ui, page }) {
			await ui.range()
			await ui.totals(301)
			await (await opened(ui, "item")).click()
			await until("the column has values", async () => /item-\d/.test(await ui.rows.nth(3).innerText()))
			await opened(ui, "status")
			await until("the histogram is by level", async () => /error\s*30\b/.test(await ui.histogram.innerText()))
			await by(ui).selectOption("item")
			await until("the histogram is by item", async () => /item-3/.test(await ui.histogram.innerText()))
			await ui.asks(() => ui.facets.getByRole("button", { name: "Filter for status=503", exact: true }).click())
			await ui.totals(30)
			for (const { text } of await ui.some(5)) assert.match(text, /bought item-\d for/)
			await ui.range({ service: "shop-eu", q: "took_ms<5 user=user1" })
			await ui.totals(10)
			const row = ui.rows.first()
			assert.match(await row.innerText(), /user1 bought/)
			await row.click()
			await ui.record.getByText("took_ms", { exact: true }).first().waitFor()
		},
	},
	{
		name: "forms: the fields of a stage of LogQL are facets, columns and by",
		world: "forms",
		async run({ ui }) {
			await ui.range({ logql: '{service_name="shop-eu"} | pattern `<who> bought <thing> for <_>` | who="user1"' })
			await ui.totals(100)
			await (await opened(ui, "thing")).click()
			await until("the column has values", async () => /item-\d/.test(await ui.rows.first().innerText()))
			await by(ui).selectOption("thing")
			await until("the histogram is by it", async () => /item-3/.test(await ui.histogram.innerText()))
		},
	},
]
