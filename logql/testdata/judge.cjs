// Says of each query of a JSON list on standard input whether Grafana's grammar takes it: a JSON
// list of true and false.
const { parser } = require("@grafana/lezer-logql")

const valid = (query) => {
	let ok = true
	parser.parse(query).iterate({
		enter: (node) => {
			if (node.type.isError) ok = false
		},
	})
	return ok
}

let input = ""
process.stdin.on("data", (chunk) => (input += chunk))
process.stdin.on("end", () => process.stdout.write(JSON.stringify(JSON.parse(input).map(valid))))
