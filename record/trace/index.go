package trace

// index has the languages by the bytes that show them. TestIndex prints it, if the languages have others.
var index = [256]row{
	'\t': {next: 1 << golang}, '"': {next: 1 << python}, '#': {first: 1 << jvm, call: 1<<php | 1<<dart | 1<<native},
	'&': {call: 1 << clickHouse, end: 1 << perl}, ')': {last: 1 << ruby}, '*': {first: 1<<elixir | 1<<native}, '+': {first: 1 << python},
	'.': {call: 1<<java | 1<<javascript | 1<<ruby, end: 1 << perl}, ':': {last: 1<<golang | 1<<ruby},
	'=': {first: 1<<report | 1<<native}, '>': {call: 1 << python}, '@': {call: 1 << julia}, 'A': {third: "s", first: 1 << java},
	'C': {next: 1 << haskell, call: 1 << ocaml}, 'E': {third: "cer", first: 1<<java | 1<<clojure | 1<<rlang | 1<<python},
	'F': {third: "tl", first: 1<<php | 1<<python | 1<<native, call: 1 << python}, 'P': {third: "Po", first: 1<<php | 1<<dotnet},
	'R': {call: 1 << ocaml}, 'S': {third: "Gag", first: 1<<golang | 1<<dotnet | 1<<native, next: 1 << julia},
	'T': {third: "a", first: 1 << python}, 'U': {third: "ch", first: 1<<thrown | 1<<java | 1<<dotnet | 1<<javascript | 1<<dart},
	'[': {call: 1 << lua}, 'e': {third: "r", first: 1 << javascript}, 'f': {third: "t", first: 1<<golang | 1<<rust, call: 1 << ruby},
	'g': {third: "r", first: 1 << golang}, 'h': {third: "t", first: 1 << golang}, 'i': {call: 1 << tcl},
	'l': {third: "b", first: 1 << native}, 'p': {third: "n", first: 1 << golang}, 'r': {third: "n", first: 1 << golang},
	's': {next: 1 << lua}, 't': {third: "r", first: 1<<rust | 1<<native | 1<<zig}, 'u': {third: "e", first: 1 << golang},
	'w': {call: 1 << tcl}, 0xe2: {third: "\xad", first: 1 << python},
}
