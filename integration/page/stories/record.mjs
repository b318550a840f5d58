// A record, and the records around it.
import assert from "node:assert/strict"
import { until } from "../scene.mjs"

/** The names of the records around one, as the API has them. */
async function around(scene, name, more) {
	const at = name.indexOf("/")
	const text = await (
		await fetch(
			`${scene.url}/api/v1/context?${new URLSearchParams({ service: name.slice(0, at), id: name.slice(at + 1), ...more })}`,
		)
	).text()
	return text
		.trim()
		.split("\n")
		.map((l) => JSON.parse(l))
		.filter((e) => e.record)
		.map((e) => `${e.record.line.service}/${e.record.id}`)
}

/** The names of the records in the context, from the top. */
const inContext = (ui) => ui.context.locator("[data-id]").evaluateAll((rows) => rows.map((r) => r.dataset.id))

async function open(ui, row) {
	const name = await ui.choose(row)
	await ui
		.button("Context", ui.record)
		.or(ui.record.getByRole("tab", { name: "Context" }))
		.first()
		.click()
	await ui.context.waitFor()
	return name
}

export default [
	{
		name: "record: a tree and JSON, exact values, copied, as a filter, as a column",
		async run({ ui }) {
			await ui.range({ service: "deep" })
			await ui.choose()
			const record = ui.record
			for (const text of ["12345678901234567890", "a record with parts", "/basket", "502", "red", "green"]) {
				await until(`${text} is shown`, async () => (await record.innerText()).includes(text))
			}
			const toggle = (name) =>
				record
					.getByRole("tab", { name })
					.or(record.getByRole("button", { name, exact: true }))
					.or(record.getByRole("radio", { name }))
					.first()
			await toggle("JSON").click()
			await until("the stored line is shown", async () =>
				/"big":\s*12345678901234567890/.test(await record.innerText()),
			)
			await toggle("Tree").click()
			const copy = record.getByRole("button", { name: /^Copy 12345678901234567890/ }).first()
			assert.equal(await ui.copied(copy), "12345678901234567890")
			await ui.asks(() =>
				record
					.getByRole("button", { name: /^Filter out http\.status=502|^Filter out status=502/ })
					.first()
					.click(),
			)
			await ui.totals(0)
		},
	},
	{
		name: "record: opened and closed by keys, the rows keep their height",
		async run({ ui }) {
			await ui.range()
			const height = () => ui.rows.nth(1).evaluate((r) => r.getBoundingClientRect().height)
			const before = await height()
			await ui.grid.focus()
			await ui.press("j", "j", "Enter")
			await ui.record.waitFor()
			assert.equal(await height(), before)
			const first = ui.part("sel")
			await ui.press("j")
			await until("the next record", () => ui.part("sel") !== first)
			await ui.press("Escape")
			await until("it is closed", async () => (await ui.record.count()) === 0)
			assert.ok((await ui.focused())?.id, "the focus is on a row again")
		},
	},
	{
		name: "context: of one of 50 records of the same ns, its true neighbours",
		async run(scene) {
			const { ui } = scene
			await ui.range({ service: "ties" })
			await ui.some(20)
			const row = ui.rows.filter({ hasText: "tie 25 of 50" })
			const name = await open(ui, row)
			const want = await around(scene, name, { before: 10, after: 10 })
			assert.equal(want.length, 21)
			await until("its neighbours", async () =>
				assert.deepEqual([await inContext(ui)].map((l) => (l[0] === want[0] ? l : l.reverse()))[0], want),
			)
		},
	},
	{
		name: "context: 10 more at both ends, this service or all, or those of one request",
		async run(scene) {
			const { ui } = scene
			const to = new Date(Date.parse(scene.facts.to) - 5 * 60_000).toISOString() // there are newer ones
			await ui.range({ q: "order", f: "service=orders", to })
			await ui.some(20)
			const name = await open(ui, ui.rows.nth(8))
			const same = async (params) => {
				const want = await around(scene, name, params)
				await until(`the records of ${JSON.stringify(params)}`, async () => {
					const got = await inContext(ui)
					assert.deepEqual(got[0] === want[0] ? got : got.reverse(), want)
				})
			}
			await same({ before: 10, after: 10 })
			await ui.button("10 more before", ui.context).click()
			await same({ before: 20, after: 10 })
			await ui.button("10 more after", ui.context).click()
			await same({ before: 20, after: 20 })
			await ui.context.getByRole("radio", { name: "All services" }).check()
			await until("other services too", async () => new Set((await inContext(ui)).map((n) => n.split("/")[0])).size > 1)
			assert.ok((await inContext(ui)).includes(name), "the record itself is there")
			assert.ok(ui.part("around"), "it has a link")
			await ui.context
				.getByRole("radio", { name: /^Same / })
				.first()
				.check()
			await until("the records of one request", async () => {
				const list = await inContext(ui)
				return list.includes(name) && list.length <= 8 && list.length >= 2
			})
			await ui.page.reload()
			await ui.context.waitFor()
			await until("the link has it", async () => (await inContext(ui)).includes(name))
		},
	},
	{
		name: "context: matches of the search are marked, and the filter is off",
		async run({ ui }) {
			await ui.range({ q: "customer" })
			await ui.some(10)
			await open(ui, ui.rows.nth(3))
			await until("marks", async () => (await ui.context.locator("mark").allInnerTexts()).some((t) => t === "customer"))
		},
	},
	{
		name: "link: a record in a second browser, also after compaction",
		world: "old",
		async run(scene) {
			const { ui } = scene
			await ui.range()
			await ui.some(20)
			const name = await ui.choose(ui.rows.nth(7))
			const link = await ui.copied(ui.button("Copy link"))
			assert.ok(link.startsWith(scene.url), link)
			assert.ok(new URLSearchParams(new URL(link).hash.slice(1)).get("from"), "the link has fixed times")
			const look = async () => {
				const other = await scene.fresh()
				await other.page.goto(link)
				await other.record.waitFor()
				await until("the record is chosen", async () => (await other.shown()).some((r) => r.id === name && r.selected))
				return other.record.innerText()
			}
			const text = await look()
			const compacted = await scene.call("shell", {
				Command: "retention close && retention compact --grace 1s && sleep 2 && retention compact --grace 1s",
			})
			assert.equal(compacted.code, 0, compacted.stderr)
			assert.equal(await look(), text)
		},
	},
	{
		name: "link: a relative range becomes a fixed one",
		async run(scene) {
			const { ui } = scene
			await ui.open("since=15m&q=basket")
			const link = new URLSearchParams(new URL(await ui.copied(ui.button("Copy link"))).hash.slice(1))
			assert.ok(link.get("from") && link.get("to") && !link.get("since"))
			assert.equal(link.get("q"), "basket")
			assert.equal(ui.part("since"), "15m", "the view itself stays relative")
		},
	},
	{
		name: "record: the link of a record that is in no list opens it",
		async run(scene) {
			const { ui } = scene
			await ui.range({ service: "ties" })
			const name = await ui.choose(ui.rows.nth(3))
			const other = await scene.fresh()
			await other.open({ from: scene.facts.from, to: scene.facts.to, service: "web", sel: name })
			await other.record.waitFor()
			await until("it is shown", async () => /tie \d\d of 50/.test(await other.record.innerText()))
		},
	},
]
