// Opens a URL of the page N times in fresh contexts, and prints for each {"ms", "records"}: the time
// until the first record can be seen, and the number of records that the histogram counts. The first
// time does not count. `make bench` runs it.
import { chromium } from "playwright-core"

const [url, times] = process.argv.slice(2)
const browser = await chromium.launch({
	executablePath: process.env.PAGE_CHROMIUM,
	args: [
		"--no-sandbox",
		"--disable-gpu",
		"--no-first-run",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
	],
})
for (let n = 0; n <= Number(times); n++) {
	const context = await browser.newContext(),
		page = await context.newPage(),
		begun = performance.now()
	await page.goto(url, { waitUntil: "commit" })
	await page.locator("[role=row][data-id]").first().waitFor({ timeout: 60_000 })
	const ms = Math.round(performance.now() - begun)
	await page.waitForFunction(() => document.documentElement.dataset.state === "ready", null, { timeout: 120_000 })
	const label = await page.getByRole("region", { name: "Histogram" }).getByRole("img").getAttribute("aria-label")
	if (n)
		console.log(JSON.stringify({ ms, records: Number(/([\d,]+) record/.exec(label)?.[1].replace(/,/g, "") ?? -1) }))
	await context.close()
}
await browser.close()
