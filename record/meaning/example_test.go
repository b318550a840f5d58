package meaning_test

import (
	"fmt"

	"blobtail/record/meaning"
)

func Example() {
	p := meaning.NewReader()
	body := []byte(`{"time":1795187045.25,"severity":"WARN","app":"web","message":"caf\u00e9 shut","user":7}`)
	if _, err := p.Scan(body); err != nil {
		fmt.Println(err)
		return
	}
	line, stamp := p.AppendLine(nil, &meaning.Defaults{})
	fmt.Printf("%s%s %v\n", line, stamp.Service, stamp.Level)

	_, err := p.Scan([]byte(`{"user":07}`))
	fmt.Println(err)
	// Output:
	// {"ts":"2026-11-20T15:04:05.250000000Z","level":"warn","service":"web","msg":"café shut","user":7}
	// web warn
	// at byte 9: not valid JSON: character '7' in a number
}
