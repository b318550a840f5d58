// The page as a person finds its parts: by their roles and names.
import assert from "node:assert/strict"
import { sleep, until } from "./scene.mjs"

export class Page {
	constructor(page, scene) {
		this.page = page
		this.scene = scene
		const region = (name) => page.getByRole("region", { name, exact: true })
		this.search = page
			.getByRole("textbox", { name: "Search", exact: true })
			.or(page.getByRole("combobox", { name: "Search", exact: true }))
		this.mistake = page
			.getByRole("search")
			.or(page.locator("form", { has: this.search }))
			.getByRole("alert")
		this.filters = page.getByRole("list", { name: "Filters" })
		this.histogram = region("Histogram")
		this.grid = page.getByRole("grid", { name: "Records" })
		this.rows = this.grid.locator("[role=row][data-id]")
		this.record = region("Record")
		this.context = region("Context")
		this.missing = page.getByRole("region", { name: "Missing" }).or(page.locator("[role=alert][aria-label=Missing]"))
		this.facets = page.getByRole("complementary", { name: "Fields" })
		this.foot = page.getByRole("contentinfo")
		this.live = page.getByRole("button", { name: "Live", exact: true })
	}

	button(name, within = this.page) {
		return within.getByRole("button", { name, exact: typeof name === "string" })
	}

	dialog(name) {
		return this.page.getByRole("dialog", { name, exact: true })
	}

	/**
	 * Opens the page with a fragment: a text, or an object of its parts. A page that is open
	 * already goes there as by a link; anew loads all of it again.
	 */
	async open(fragment = "", { wait = true, anew = false } = {}) {
		if (typeof fragment !== "string") {
			const parts = new URLSearchParams()
			for (const [key, value] of Object.entries(fragment)) for (const v of [value].flat()) parts.append(key, v)
			fragment = parts.toString()
		}
		const here = this.page.url().startsWith(this.scene.origin)
		if (here && !anew && fragment !== this.fragment()) {
			const n = await this.asked()
			await this.page.evaluate((fragment) => (location.hash = fragment), fragment)
			await until("it asks", async () => (await this.asked()) > n, 1000).catch(() => {}) // another view of the same question
		} else {
			if (here) await this.page.goto("about:blank") // else it would be the same document
			await this.page.goto(this.scene.url + "/" + (fragment && "#" + fragment))
		}
		if (wait) await this.ready()
		return this
	}

	/** How often questions have begun. */
	asked() {
		return this.page.evaluate(() => window.__asked)
	}

	/** Opens the range that the world has records in. */
	range(more = {}, how) {
		return this.open({ from: this.scene.facts.from, to: this.scene.facts.to, utc: "1", ...more }, how)
	}

	state() {
		return this.page.evaluate(() => document.documentElement.dataset.state)
	}

	/** Waits until the questions of the view are answered. */
	async ready(timeout = 20000) {
		await this.page.waitForFunction(() => document.documentElement.dataset.state === "ready", null, {
			timeout,
			polling: 20,
		})
	}

	/** Does something that asks anew, and waits for the answers. */
	async asks(act, timeout) {
		const before = this.fragment(),
			n = await this.asked()
		await act()
		await until("the fragment changes", () => this.fragment() !== before, timeout)
		for (let wait = 0; wait < 25 && (await this.asked()) === n; wait++) await sleep(40)
		await this.ready(timeout)
	}

	fragment() {
		return new URL(this.page.url()).hash.slice(1)
	}

	part(key) {
		return new URLSearchParams(this.fragment()).get(key)
	}

	async type(text) {
		await this.search.fill(text)
		await this.search.press("Enter")
	}

	async find(text) {
		await this.asks(() => this.type(text))
	}

	/** Waits until new records come by themselves. */
	async follows() {
		await this.page.getByRole("status").getByText("Following", { exact: true }).waitFor()
	}

	/** The number of records that the histogram counts. */
	async total() {
		const text = await this.histogram.getByRole("img").getAttribute("aria-label"),
			found = /([\d,]+) records?/.exec(text)
		assert.ok(found, `no number of records in the histogram: ${text}`)
		return Number(found[1].replace(/,/g, ""))
	}

	async totals(n) {
		await until(`the histogram counts ${n} records`, async () => assert.equal(await this.total(), n))
	}

	/** The rows in the DOM, from the top. */
	shown() {
		return this.rows.evaluateAll((rows) =>
			rows
				.map((r) => ({
					id: r.dataset.id,
					index: Number(r.getAttribute("aria-rowindex")),
					text: r.textContent,
					selected: r.getAttribute("aria-selected") === "true",
				}))
				.sort((a, b) => a.index - b.index),
		)
	}

	ids() {
		return this.shown().then((rows) => rows.map((r) => r.id))
	}

	/** Waits for rows, and returns those in the DOM. */
	async some(n = 1) {
		return until(`${n} rows are there`, async () => {
			const rows = await this.shown()
			return rows.length >= n && rows
		})
	}

	/** Selects the row with a text, by a click. */
	async choose(row = this.rows.first()) {
		const name = await row.getAttribute("data-id")
		await row.click({ position: { x: 60, y: 8 } })
		await this.record.waitFor()
		return name // on a small screen the row has gone
	}

	press(...keys) {
		return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve())
	}

	focused() {
		return this.page.evaluate(() => {
			const e = document.activeElement
			return e && e !== document.body
				? {
						tag: e.tagName,
						role: e.getAttribute("role"),
						name: e.getAttribute("aria-label") ?? e.textContent.slice(0, 60),
						id: e.dataset?.id ?? e.closest?.("[data-id]")?.dataset.id,
					}
				: null
		})
	}

	/** Moves the focus by Tab until it is where it should be. */
	async tabTo(what, at, most = 80) {
		for (let n = 0; n < most; n++) {
			if (await at(await this.focused())) return
			await this.page.keyboard.press("Tab")
		}
		assert.fail(`Tab does not come to ${what}`)
	}

	/** A chip by the text of its button. */
	chip(text) {
		return this.filters.getByRole("listitem").filter({ hasText: text }).getByRole("button").first()
	}

	/** Gives the answers of a route other bytes, or fails them. */
	async answer(route, how) {
		const match = (url) => url.pathname === "/api/v1/" + route
		await this.page.route(match, async (r) => {
			try {
				if (how === "abort") return await r.abort()
				const answer = await r.fetch()
				await how(r, answer, (await answer.body()).toString())
			} catch (err) {
				if (!this.scene.over) this.scene.errors.push(`the answer of ${route}: ${err.stack}`)
			}
		})
		return () => this.page.unroute(match)
	}

	/** What a click on a copy button puts into the clipboard. */
	async copied(button) {
		await this.page.evaluate(() => {
			window.__copied = undefined
			const keep = (text) => Promise.resolve((window.__copied = text))
			Object.defineProperty(navigator, "clipboard", {
				configurable: true,
				value: { writeText: keep, write: async (items) => keep(await (await items[0].getType("text/plain")).text()) },
			})
		})
		await button.click()
		return until("a text is copied", () => this.page.evaluate(() => window.__copied))
	}

	/** Whether the page as a whole scrolls sideways. */
	async wide() {
		return this.page.evaluate(() => ({
			page: document.documentElement.scrollWidth,
			window: document.documentElement.clientWidth,
		}))
	}
}
