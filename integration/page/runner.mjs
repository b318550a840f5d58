// Runs the stories in stories/*.mjs in one Chromium. It lists them on stdout, and then plays those
// that stdin names, a line of JSON each; page_test.go is at the other end.
import { chromium } from "playwright-core"
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { join } from "node:path"
import { Scene } from "./scene.mjs"

const say = (value) => process.stdout.write(JSON.stringify(value) + "\n")

const stories = new Map()
for (const file of readdirSync(new URL("stories/", import.meta.url)).sort()) {
	const { default: list } = await import(new URL("stories/" + file, import.meta.url))
	for (const story of list) {
		if (stories.has(story.name)) throw new Error(`two stories are named ${story.name}`)
		stories.set(story.name, story)
	}
}

const args = [
	"--no-sandbox",
	"--disable-gpu",
	"--disable-quic",
	"--no-first-run",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-sync",
	"--disable-default-apps",
	"--js-flags=--expose-gc",
]
const browser = await chromium.launch({ executablePath: process.env.PAGE_CHROMIUM, args })

say({
	stories: [...stories.values()].map(
		({ name, world = "shop", alone = false, waits = false, todo = "", picture = false }) => ({
			name,
			world,
			alone,
			waits,
			todo,
			picture,
		}),
	),
})

/** The folder of the pictures of a story. */
function folder(name) {
	const dir = join(process.env.PAGE_SHOTS, name.replace(/[^a-z0-9]+/gi, "-"))
	mkdirSync(dir, { recursive: true })
	return dir
}

async function play({ story: name, world, url, facts }) {
	const story = stories.get(name),
		begun = performance.now()
	const scene = new Scene({ browser, story, world, url, facts })
	const of = { story: name, ok: false, error: "", files: [] }
	let timer
	try {
		await scene.begin()
		const late = new Promise(
			(_, no) =>
				(timer = setTimeout(
					() => no(new Error(`the story takes longer than ${story.limit ?? 60} s`)),
					(story.limit ?? 60) * 1000,
				)),
		)
		await Promise.race([story.run(scene), late])
		of.ok = true
	} catch (err) {
		of.error = String(err?.stack ?? err).replace(/\u001b\[[0-9;]*m/g, "")
	}
	clearTimeout(timer)
	of.ms = Math.round(performance.now() - begun)
	await scene.settle()
	Object.assign(of, {
		console: scene.console,
		csp: scene.csp,
		errors: scene.errors,
		foreign: scene.foreign,
		figures: scene.figures,
	})
	if (!of.ok || scene.console.length || scene.csp.length || scene.errors.length || scene.foreign.length) {
		try {
			of.files = await scene.keep(folder(name))
			writeFileSync(join(folder(name), "error.txt"), JSON.stringify(of, null, 1).replace(/\\n/g, "\n"))
		} catch (err) {
			of.files = [`no picture: ${err}`]
		}
	}
	await scene.end()
	say(of)
}

const running = new Set()
for await (const line of createInterface({ input: process.stdin })) {
	const one = play(JSON.parse(line)).finally(() => running.delete(one))
	running.add(one)
}
await Promise.all(running)
await browser.close()
