// The list: it holds a million records, and shows those in view.
import assert from "node:assert/strict"
import { median, sleep, until } from "../scene.mjs"
import { heap, longest } from "../measure.mjs"

const inDOM = (ui) => ui.page.locator("[role=row][data-id]").count()

export default [
	{
		name: "list: newest first or last",
		async run({ ui, facts }) {
			await ui.range()
			const button = ui.button("Newest first")
			assert.equal(await button.getAttribute("aria-pressed"), "true")
			const newest = (await ui.some(5))[0].id
			await ui.asks(() => button.click())
			assert.equal(await button.getAttribute("aria-pressed"), "false")
			const oldest = (await ui.some(5))[0]
			assert.notEqual(oldest.id, newest)
			assert.ok(oldest.text.includes(facts.from.slice(11, 19)), oldest.text)
		},
	},
	{
		name: "list: older records come by scrolling, each once and in order",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range({ service: "cron" })
			const want = (
				await (
					await fetch(
						`${scene.url}/api/v1/records?${new URLSearchParams({ service: "cron", from: facts.from, to: facts.to, form: "events", order: "desc", limit: 1000 })}`,
					)
				).text()
			)
				.trim()
				.split("\n")
				.map((l) => JSON.parse(l))
				.filter((e) => e.record)
				.map((e) => "cron/" + e.record.id)
			await ui.grid.focus()
			const seen = new Map()
			await until(
				"a thousand records",
				async () => {
					for (const { index, id } of await ui.shown()) {
						assert.ok(!seen.has(index) || seen.get(index) === id, `row ${index} is two records`)
						seen.set(index, id)
					}
					if (seen.size >= 1000) return true
					await ui.press("PageDown")
					return false
				},
				30000,
			)
			// A row that was passed unseen does not matter: its neighbours have their places.
			const first = Math.min(...seen.keys())
			assert.deepEqual(
				[...seen].filter(([n, id]) => n - first < want.length && want[n - first] !== id).slice(0, 3),
				[],
				"records in the order of the API",
			)
		},
	},
	{
		name: "list: it says how many it has of those that the histogram counts",
		async run({ ui, facts }) {
			await ui.range()
			const text = await until("the number of all records is said", async () => {
				const text = await ui.page.locator("body").innerText()
				return text.includes(facts.records.toLocaleString("en-US")) && text
			})
			const all = facts.records.toLocaleString("en-US")
			assert.match(
				text,
				new RegExp(`\\d of (the |all )?${all}|(first|newest|oldest) [\\d,]+.*${all}`, "i"),
				"no text has both numbers",
			)
		},
	},
	{
		name: "list: 10,000 rows at most are kept, and it says so",
		world: "million",
		limit: 60,
		async run({ ui }) {
			await ui.range()
			await ui.grid.focus()
			const scroller = await ui.grid.evaluateHandle((g) =>
				[g, ...g.querySelectorAll("*")].find((e) => e.scrollHeight > e.clientHeight + 50),
			)
			await until(
				"some rows are dropped at the other end, which is said",
				async () => {
					for (let n = 0; n < 4; n++) {
						await scroller.evaluate((s) => (s.scrollTop += 3000))
						await sleep(20)
						// A scroll that is ahead of the records begins anew at its place.
						await ui.ready()
					}
					return /at most 10,000 are kept/.test(await ui.page.getByRole("tabpanel").innerText())
				},
				50000,
			)
			const [, loaded] = /([\d,]+) of [\d,]+ records loaded/.exec(await ui.page.getByRole("tabpanel").innerText())
			assert.ok(Number(loaded.replaceAll(",", "")) <= 10_000, loaded)
		},
	},
	{
		name: "list: a million records scrolled with fewer than 200 rows in the DOM",
		world: "million",
		alone: true,
		limit: 150,
		async run(scene) {
			const { ui } = scene
			const longests = []
			for (let run = 0; run < 3; run++) {
				await ui.range()
				await ui.grid.focus()
				const before = (await ui.some(10))[0].id
				let most = 0
				const took = await longest(scene, ui.page, async () => {
					for (const keys of [
						Array(12).fill("PageDown"),
						Array(12).fill("End"),
						Array(12).fill("PageUp"),
						Array(4).fill("End"),
						["Home"],
					]) {
						for (const key of keys) {
							await ui.press(key)
							most = Math.max(most, await inDOM(ui))
						}
					}
				})
				assert.ok(most < 200, `${most} rows in the DOM`)
				assert.ok(most > 5)
				longests.push(took[0]?.ms ?? 0)
				scene.figures["scripts " + run] = took.slice(0, 2)
				await until("Home shows the newest", async () => (await ui.shown())[0].id === before)
			}
			scene.figures.longest = longests
			assert.ok(median(longests) < 100, `scripts of ${longests} ms`)
		},
	},
	{
		name: "list: records of 1 MiB load as far as one sees, and then no more",
		context: { viewport: { width: 1280, height: 1600 } },
		limit: 120,
		async run({ ui, page, facts }) {
			const newest = Date.parse(facts.to) - 60_000,
				pad = "x".repeat(1 << 20)
			const record = (n) =>
				`{"record":{"id":"${newest - n}000000-00000000000000000000000000000001-0","line":{"ts":"${new Date(newest - n).toISOString()}","level":"info","service":"web","msg":"number ${n} ${pad}"}}}\n`
			let asked = 0
			await page.route(
				(url) => url.pathname === "/api/v1/records",
				(r) => {
					asked++
					const asks = new URL(r.request().url()).searchParams,
						way = asks.has("after") ? -1 : 1,
						id = asks.get("after") ?? asks.get("before"),
						list = []
					for (let n = id ? newest - id.slice(0, 13) + way : 0; n >= 0 && list.length < 9; n += way) list.push(n)
					const end = {
						complete: true,
						more: way > 0 || list.at(-1) > 0,
						records: list.length,
						problems: [],
						warnings: [],
						notes: [],
						gaps: [],
						cost: { requests: 0, bytes: 0 },
					}
					return r.fulfill({
						contentType: "application/x-ndjson",
						body: list.map(record).join("") + JSON.stringify({ end }) + "\n",
					})
				},
			)
			await ui.range()
			await ui.some(10)
			await ui.grid.evaluate((g) => (g.scrollTop = 2000))
			const inView = () => ui.shown().then((rows) => rows.filter((r) => r.index > 100).map((r) => r.index))
			await until("the rows in view are there", async () => (await inView()).length > 40, 60000)
			await until(
				"nothing loads any more",
				async () => {
					const before = asked
					await sleep(1000)
					return asked === before
				},
				30000,
			)
			const rows = await inView()
			assert.deepEqual(
				rows,
				rows.map((_, i) => rows[0] + i),
				"without a hole",
			)
		},
	},
	{
		name: "list: the focus stays with its record, also in the answer to another question",
		async run({ ui }) {
			await ui.range()
			await ui.grid.focus()
			await ui.press("e")
			const { id } = await until("a row has the focus", () => ui.focused().then((it) => it?.id && it))
			const place = (await ui.shown()).find((r) => r.id === id).index
			await ui.asks(() => ui.press("3")) // without warnings, which are before it
			await until("it is in another place", async () => (await ui.shown()).find((r) => r.id === id)?.index < place)
			await until("it has the focus", async () => (await ui.focused())?.id === id)
		},
	},
	{
		name: "list: End goes to the oldest record of a million",
		world: "million",
		async run({ ui }) {
			await ui.range()
			await ui.grid.focus()
			await until(
				"the oldest record is there",
				async () => {
					await ui.press("End")
					await sleep(100)
					return (await ui.shown()).some((r) => /item 0 is done/.test(r.text))
				},
				30000,
			)
			assert.ok((await inDOM(ui)) < 200)
			await ui.press("Home")
			await until(
				"Home goes back to the newest",
				async () => (await ui.shown()).some((r) => /item 999999 is done/.test(r.text)),
				20000,
			)
		},
	},
	{
		name: "list: resizing at the end of a million records",
		world: "million",
		alone: true,
		limit: 150,
		async run(scene) {
			const { ui, page } = scene
			await ui.range()
			await ui.grid.focus()
			for (let n = 0; n < 40; n++) {
				await ui.press("End")
				await sleep(30)
			}
			const took = await longest(scene, page, async () => {
				for (const [width, height] of [
					[700, 500],
					[1400, 900],
					[1000, 400],
					[1280, 800],
				]) {
					await page.setViewportSize({ width, height })
					await sleep(120)
				}
			})
			scene.figures.longest = took[0]
			assert.ok((took[0]?.ms ?? 0) < 100, JSON.stringify(took))
			const fits = await ui.grid.evaluate((g) => {
				const rows = [...g.querySelectorAll("[role=row][data-id]")].map((r) => r.getBoundingClientRect()),
					box = g.getBoundingClientRect()
				return { bottom: Math.max(...rows.map((r) => r.bottom)) >= box.bottom - 30, n: rows.length }
			})
			assert.ok(fits.bottom, "the rows fill the list")
		},
	},
	{
		name: "list: columns, wrap, and no setting that changes the rows for good",
		async run({ ui }) {
			await ui.range()
			await ui.choose()
			await ui.asks(() => ui.record.getByRole("button", { name: "Show as column status" }).click())
			assert.equal(ui.part("col"), "status")
			await ui.grid.getByRole("columnheader", { name: "status" }).waitFor()
			await ui.asks(() => ui.button("Wrap").click())
			assert.equal(ui.part("wrap"), "1")
			await ui.asks(() => ui.button("Wrap").click())
			const other = await ui.scene.fresh()
			await other.range()
			assert.equal(await other.grid.getByRole("columnheader", { name: "status" }).count(), 0)
			await ui.open()
			assert.equal(
				await ui.grid.getByRole("columnheader", { name: "status" }).count(),
				0,
				"the first page has no column from before",
			)
		},
	},
	{
		name: "row: message, then fields; nanoseconds are kept; matches are marked",
		async run({ ui }) {
			await ui.range({ q: "basket" })
			const rows = await ui.some(5)
			assert.match(rows[0].text, /GET \/basket\/\d+ answered in \d+ ms.*status=/s)
			const marks = await ui.rows.first().locator("mark").allInnerTexts()
			assert.ok(marks.includes("basket"), `marked: ${marks}`)
			await ui.range({ service: "ties" })
			const row = ui.rows.first()
			assert.match(await row.innerText(), /:\d\d\.123\b/, "shown to ms")
			const titles = await row.evaluate((r) =>
				[r, ...r.querySelectorAll("*")].map((e) => e.getAttribute("title") ?? "").join(" "),
			)
			assert.match(titles, /123456789/, "ns on hover")
			await ui.choose(row)
			assert.match(await ui.record.innerText(), /123456789/, "ns in the record")
		},
	},
	{
		name: "row: colours by what the histogram is divided by",
		async run({ ui }) {
			// Rows of one level differ by their service, if that divides the histogram.
			const paint = () =>
				ui.rows.evaluateAll((rows) => {
					const styles = {}
					for (const r of rows.filter((r) => / info /.test(` ${r.className} `) || /\binfo\b/.test(r.textContent))) {
						const service = r.dataset.id.split("/")[0]
						styles[service] = [r, ...r.querySelectorAll("*")]
							.map((e) =>
								[e, "::before"]
									.map((x) => {
										const s = x === e ? getComputedStyle(e) : getComputedStyle(e, x)
										return [s.color, s.backgroundColor, s.borderLeftColor, s.boxShadow].join()
									})
									.join(";"),
							)
							.slice(0, 6)
							.join("|")
					}
					return styles
				})
			await ui.range({ split: "service" })
			await ui.some(10)
			const styles = await paint()
			assert.ok(Object.keys(styles).length > 1)
			assert.ok(new Set(Object.values(styles)).size > 1, "rows of all services look the same")
		},
	},
	{
		name: "memory: what was scrolled past is not kept",
		world: "million",
		alone: true,
		limit: 150,
		async run(scene) {
			const { ui, page } = scene
			await ui.range()
			const scroller = await ui.grid.evaluateHandle((g) =>
				[g, ...g.querySelectorAll("*")].find((e) => e.scrollHeight > e.clientHeight + 50),
			)
			const scroll = async (steps) => {
				for (let n = 0; n < steps; n++) {
					await scroller.evaluate((s) => (s.scrollTop += 3000))
					await sleep(20)
				}
				return ui.some() // a busy machine shows them later
			}
			await scroll(55) // past the rows that are kept
			const before = await heap(page)
			const rows = await scroll(55)
			const growth = ((await heap(page)) - before) / 1e6
			scene.figures.rows = rows.at(-1).index
			scene.figures.growthMB = Math.round(growth * 10) / 10
			assert.ok(growth < 40, `the heap grows by ${growth} MB`)
		},
	},
]
