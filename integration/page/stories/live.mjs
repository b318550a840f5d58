// The live view: nothing is lost, nothing comes twice, and it neither grows nor jumps.
import assert from "node:assert/strict"
import { broken, median, sleep, status, until } from "../scene.mjs"
import { heap, longest } from "../measure.mjs"

/** Goes live on the records of a service. */
async function live(ui, service = "flow") {
	await ui.open({ service, since: "15m" })
	await ui.live.click()
	await ui.follows()
}

const numbers = (rows) =>
	rows.map((r) => Number(/flow (\d+)\b/.exec(r.text)?.[1] ?? NaN)).filter((n) => !Number.isNaN(n))

/** Scrolls through all rows, and returns the numbers of their records by the index of the row. */
async function walk(ui) {
	const seen = new Map()
	await ui.grid.focus()
	await ui.press("Home")
	await sleep(100)
	for (let same = 0; same < 4;) {
		const before = seen.size
		for (const r of await ui.shown()) {
			const n = /flow (\d+)\b/.exec(r.text)
			if (n) seen.set(r.id, Number(n[1]))
		}
		same = seen.size === before ? same + 1 : 0
		await ui.press("PageDown")
		await sleep(25)
	}
	return seen
}

/** Fails if numbers are missing or twice. */
function whole(seen, total) {
	const list = [...seen.values()].sort((a, b) => a - b)
	const twice = list.filter((n, i) => n === list[i - 1])
	const have = new Set(list),
		lost = Array.from({ length: total }, (_, n) => n).filter((n) => !have.has(n))
	assert.deepEqual(
		{ lost: lost.slice(0, 20), twice: twice.slice(0, 20) },
		{ lost: [], twice: [] },
		`${list.length} of ${total}`,
	)
}

export default [
	{
		name: "live: 5,000 records a second for 20 s",
		world: "live/flood",
		waits: true,
		alone: true,
		limit: 150,
		async run(scene) {
			const { ui, page } = scene
			await live(ui)
			await scene.call("flow", { Service: "flow", Rate: 5000, Seconds: 22 })
			await until("they come", async () => numbers(await ui.shown()).length > 5)
			await sleep(2000) // the ring fills
			const before = await heap(page),
				longests = []
			let most = 0
			for (let run = 0; run < 3; run++) {
				const took = await longest(scene, page, () => sleep(3000))
				longests.push(took[0]?.ms ?? 0)
				scene.figures["scripts " + run] = took.slice(0, 2)
				most = Math.max(most, await page.locator("[role=row][data-id]").count())
			}
			const sent = await scene.call("flowed")
			const growth = ((await heap(page)) - before) / 1e6
			Object.assign(scene.figures, { sent, longests, growthMB: Math.round(growth * 10) / 10 })
			await until("the last record is there", async () => numbers(await ui.shown()).includes(sent - 1), 20000)
			const top = numbers(await ui.shown()).sort((a, b) => b - a)
			assert.deepEqual(
				top,
				Array.from({ length: top.length }, (_, i) => sent - 1 - i),
				"the newest records, without a hole",
			)
			assert.ok(most < 200, `${most} rows in the DOM`)
			assert.ok(growth < 20, `the heap grows by ${growth} MB`)
			assert.ok(median(longests) < 100, `scripts of ${longests} ms`)
		},
	},
	{
		name: "live: server and ingester are killed and come back; nothing is lost or doubled",
		world: "live/kills",
		waits: true,
		limit: 80,
		allow: [broken, status("50[23]")],
		async run(scene) {
			const { ui } = scene
			await live(ui)
			await scene.call("flow", { Service: "flow", Rate: 150, Seconds: 10 })
			await until("they come", async () => numbers(await ui.shown()).length > 3)
			await scene.call("kill", { Who: "server" })
			await sleep(1500)
			await scene.call("start", { Who: "server" })
			await sleep(1500)
			await scene.call("kill", { Who: "ingester" })
			await sleep(500)
			await scene.call("start", { Who: "ingester" })
			await sleep(1500)
			await scene.call("kill", { Who: "server" })
			await scene.call("start", { Who: "server" })
			const sent = await scene.call("flowed")
			await until("the last record is there", async () => numbers(await ui.shown()).includes(sent - 1), 30000)
			whole(await walk(ui), sent)
		},
	},
	{
		name: "live: scrolling up pauses, holds the place, and counts what is new",
		world: "live/pause",
		waits: true,
		async run(scene) {
			const { ui, page } = scene
			await live(ui)
			await scene.call("flow", { Service: "flow", Rate: 100, Seconds: 60 })
			// A list that is no taller than its window cannot be scrolled.
			await until("they fill the list", () => ui.grid.evaluate((e) => e.scrollHeight > e.clientHeight + 200))
			await ui.grid.hover()
			await page.mouse.wheel(0, 160) // the newest is on top
			const news = ui.page.getByRole("button", { name: /\d+ new/ })
			await news.waitFor()
			const seen = (await ui.shown()).slice(4, 12)
			const place = () =>
				ui.rows.evaluateAll(
					(rows, id) => rows.find((r) => r.dataset.id === id)?.getBoundingClientRect().top,
					seen[3].id,
				)
			const at = await place()
			await until(
				"more than 50 are new",
				async () => Number(/([\d,]+) new/.exec(await news.innerText())[1].replace(",", "")) > 50,
			)
			assert.ok(Math.abs((await place()) - at) < 2, `the row moved from ${at} to ${await place()}`)
			await news.click()
			await scene.call("enough")
			const sent = await scene.call("flowed")
			await until("the newest is there", async () => numbers(await ui.shown()).includes(sent - 1))
			whole(await walk(ui), sent)
		},
	},
	{
		name: "live: space pauses, f ends it",
		world: "live/keys",
		waits: true,
		async run(scene) {
			const { ui } = scene
			await ui.open({ service: "flow", since: "15m" })
			await ui.press("f")
			await until("it is live", async () => (await ui.live.getAttribute("aria-pressed")) === "true")
			await scene.call("flow", { Service: "flow", Rate: 50, Seconds: 60 })
			await until("some come", async () => numbers(await ui.shown()).length > 5)
			await ui.grid.focus()
			await ui.press("Space")
			await ui.page.getByRole("button", { name: /\d+ new/ }).waitFor()
			const held = await ui.ids()
			await sleep(600)
			assert.deepEqual((await ui.ids()).slice(0, 5), held.slice(0, 5))
			await ui.press("Space")
			await scene.call("enough")
			const sent = await scene.call("flowed")
			await until("it goes on", async () => numbers(await ui.shown()).includes(sent - 1))
			await ui.press("f")
			await until("it has ended", async () => (await ui.live.getAttribute("aria-pressed")) === "false")
		},
	},
	{
		name: "live: it stops while it is hidden for 30 s, and goes on without loss",
		world: "live/hidden",
		waits: true,
		limit: 60,
		async run(scene) {
			const { ui, page } = scene
			await page.clock.install()
			await live(ui)
			const open = new Set()
			page.on("request", (r) => /\/tail\?/.test(r.url()) && open.add(r))
			for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => open.delete(r))
			await scene.call("flow", { Service: "flow", Rate: 50, Seconds: 60 })
			await until("some come", async () => numbers(await ui.shown()).length > 5)
			const hide = (hidden) =>
				page.evaluate((hidden) => {
					Object.defineProperty(document, "hidden", { configurable: true, value: hidden })
					Object.defineProperty(document, "visibilityState", {
						configurable: true,
						value: hidden ? "hidden" : "visible",
					})
					document.dispatchEvent(new Event("visibilitychange"))
				}, hidden)
			await hide(true)
			await page.clock.fastForward(31_000)
			await sleep(300)
			const had = Math.max(...numbers(await ui.shown()))
			await sleep(500) // more are sent than came
			await scene.call("enough")
			const sent = await scene.call("flowed")
			await sleep(300)
			assert.ok(Math.max(...numbers(await ui.shown())) < sent - 1, "it goes on while it is hidden")
			await hide(false)
			await page.clock.fastForward(2000)
			await until("the rest has come", async () => numbers(await ui.shown()).includes(sent - 1), 20000)
			whole(await walk(ui), sent)
			assert.ok(had < sent)
		},
	},
	{
		name: "live: an ingester that is gone is said, in words",
		world: "live/gone",
		waits: true,
		limit: 60,
		async run(scene) {
			const { ui } = scene
			await live(ui)
			await scene.call("send", { Lines: `{"service":"flow","msg":"flow 1"}\n` })
			await until("it comes", async () => numbers(await ui.shown()).length === 1)
			await scene.call("kill", { Who: "ingester" })
			await until(
				"it is said",
				async () => /ingester|does not answer|may be missing/i.test(await ui.page.locator("body").innerText()),
				30000,
			)
		},
	},
	{
		name: "live: new records are said to screen readers, at most every 5 s",
		world: "live/said",
		waits: true,
		limit: 60,
		async run(scene) {
			const { ui, page } = scene
			await page.addInitScript(() => {
				window.__said = []
				const live = (n) =>
					n &&
					(n.nodeType === 1 ? n : n.parentElement)?.closest?.(
						'[aria-live="polite"], [aria-live="assertive"], [role=status], [role=log]',
					)
				addEventListener("DOMContentLoaded", () =>
					new MutationObserver((all) => {
						for (const m of all) {
							const region = live(m.target)
							if (region && /\d+ new/.test(region.textContent) && window.__said.at(-1)?.text !== region.textContent)
								window.__said.push({ text: region.textContent, at: performance.now() })
						}
					}).observe(document, { subtree: true, childList: true, characterData: true }),
				)
			})
			await live(ui)
			await scene.call("flow", { Service: "flow", Rate: 40, Seconds: 12 })
			await scene.call("flowed")
			const said = await page.evaluate(() => window.__said)
			scene.figures.said = said.length
			assert.ok(said.length >= 1 && said.length <= 4, JSON.stringify(said))
			for (let i = 1; i < said.length; i++) assert.ok(said[i].at - said[i - 1].at > 3500, JSON.stringify(said))
		},
	},
]
