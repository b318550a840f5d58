// A Scene is the browser, the page and the world of one story. It fails a story for an error of the
// console, an error of the page, a report of the content security policy, or a request to another
// host.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Page } from "./page.mjs"

export const sleep = (ms) => new Promise((go) => setTimeout(go, ms))

/** Polls until get() is true, or returns normally if it returns nothing. The last error says why not. */
export async function until(what, get, timeout = 15000) {
	const end = performance.now() + timeout
	let why
	for (;;) {
		try {
			const value = await get()
			if (value || value === undefined) return value
			why = `it is ${value}`
		} catch (err) {
			why = err
		}
		if (performance.now() > end) throw new Error(`after ${timeout} ms not yet: ${what}: ${why?.message ?? why}`)
		await sleep(25)
	}
}

/** The line of the console about an answer of the API with a status. */
export const status = (code, path = "") => new RegExp(`status of ${code} .*/api/v1/${path}`)

/** The lines of the console about a connection that could not be made, or broke. */
export const broken = /Failed to load resource: net::ERR_/

export const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1]

export class Scene {
	console = []
	csp = []
	errors = []
	foreign = []
	figures = {}
	contexts = []
	over = false // routes that answer from then on have no page

	constructor({ browser, story, world, url, facts }) {
		Object.assign(this, { browser, story, world, url, facts })
		this.allow = [...(story.allow ?? [])] // errors of the console that the story brings about
		this.origin = new URL(url).origin
	}

	async begin() {
		if (this.story.bare) return
		this.ui = await this.fresh(this.story.context)
	}

	get page() {
		return this.ui.page
	}

	/** Another page in a context of its own. */
	async fresh(options = {}) {
		const context = await this.browser.newContext({
			viewport: { width: 1280, height: 800 },
			timezoneId: "UTC",
			locale: "en-GB",
			serviceWorkers: "block",
			...options,
		})
		this.contexts.push(context)
		context.setDefaultTimeout(15000)
		context.setDefaultNavigationTimeout(30000)
		if (process.env.PAGE_TRACE && !this.story.alone) await context.tracing.start({ snapshots: true, screenshots: true })
		return this.watch(await context.newPage())
	}

	async watch(page) {
		page.on("console", (message) => {
			if (message.type() !== "error") return
			const text = `${message.text()} (${message.location().url})`
			if (!this.allow.some((a) => a.test(text))) this.console.push(text)
		})
		page.on("pageerror", (err) => this.errors.push(String(err.stack ?? err)))
		page.on("request", (request) => {
			const url = request.url()
			if (!/^(data|blob|about):/.test(url) && new URL(url).origin !== this.origin) this.foreign.push(url)
		})
		await page.exposeFunction("__violated", (text) => this.csp.push(text))
		await page.addInitScript(() => {
			window.__asked = 0 // how often questions began
			new MutationObserver(() => document.documentElement.dataset.state === "loading" && window.__asked++).observe(
				document.documentElement ?? document,
				{ attributes: true, subtree: !document.documentElement, attributeFilter: ["data-state"] },
			)
			addEventListener("securitypolicyviolation", (e) =>
				window.__violated(`${e.violatedDirective} ${e.blockedURI} ${e.sample} ${e.sourceFile}:${e.lineNumber}`),
			)
		})
		return new Page(page, this)
	}

	/** Has the Go side do something to the world. */
	async call(Op, Args = {}) {
		const answer = await fetch(process.env.PAGE_CONTROL, {
			method: "POST",
			body: JSON.stringify({ World: this.world, Op, Args }),
		})
		if (!answer.ok) throw new Error(`${Op}: ${await answer.text()}`)
		return answer.json()
	}

	/** An answer of the API, for facts to compare with. */
	async api(path, headers = {}) {
		const answer = await fetch(this.url + "/api/v1/" + path, { headers })
		if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
		return answer.json()
	}

	/** Waits for reports that are on their way. */
	async settle() {
		await sleep(20)
	}

	/** Keeps pictures, the tree of names and a trace of each page. */
	async keep(dir) {
		const files = []
		for (const [n, context] of this.contexts.entries()) {
			for (const [m, page] of context.pages().entries()) {
				const base = join(dir, `${n}-${m}`)
				await page.screenshot({ path: base + ".png", timeout: 5000 }).then(
					() => files.push(base + ".png"),
					() => {},
				)
				const tree = await page
					.locator("body")
					.ariaSnapshot({ timeout: 5000 })
					.catch((err) => String(err))
				writeFileSync(base + ".txt", page.url() + "\n" + tree)
				files.push(base + ".txt")
			}
			if (process.env.PAGE_TRACE && !this.story.alone) {
				const path = join(dir, `${n}.zip`)
				await context.tracing.stop({ path }).then(
					() => files.push(path),
					() => {},
				)
			}
		}
		return files
	}

	async end() {
		this.over = true
		for (const context of this.contexts) await context.close().catch(() => {})
	}
}
