// What a person on call does: an error rate went up; which message is new, in which service, and
// what came just before it in the same request?
import assert from "node:assert/strict"
import { until } from "../scene.mjs"

export default [
	{
		name: "incident: from the first page to what came just before the new message in the same request",
		world: "incident",
		limit: 60,
		async run(scene) {
			const { ui, facts, page } = scene
			const { message, service, before } = facts.incident
			await ui.open({ since: "30m" })
			await ui.asks(() => ui.facets.getByRole("button", { name: "Filter for level=error", exact: true }).click())
			await ui.asks(() => page.getByRole("tab", { name: "Patterns" }).click())
			const panel = page.getByRole("tabpanel"),
				rows = panel.getByRole("row").or(panel.getByRole("listitem"))
			const row = rows.filter({ hasText: message.split(" ").slice(0, 3).join(" ") }).first()
			await row.waitFor()
			assert.match(await row.innerText(), /new/i, "it is new")
			assert.ok((await row.innerText()).includes(service), "its service is said")
			await ui.asks(() =>
				row
					.getByRole("button", { name: /^Filter for|^\+/ })
					.first()
					.click(),
			)
			await ui.asks(() => page.getByRole("tab", { name: "Records" }).click())
			await ui.some(3)
			await ui.choose()
			await ui
				.button("Context", ui.record)
				.or(ui.record.getByRole("tab", { name: "Context" }))
				.first()
				.click()
			await ui.context.waitFor()
			const same = ui.context.getByRole("radio", { name: /^Same (request|trace)/ }).first()
			await same.check()
			await until("the record just before it", async () => {
				const texts = await ui.context.locator("[data-id]").allInnerTexts()
				const at = texts.findIndex((t) => t.includes(message))
				const near = [texts[at - 1] ?? "", texts[at + 1] ?? ""]
				return near.some((t) => t.includes(before))
			})
		},
	},
]
