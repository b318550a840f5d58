package meaning

import "testing"

// The arrays of bytes in a record of journald are texts, and its arrays of values are fields.
func TestJournal(t *testing.T) {
	const head = `{"ts":"2026-11-20T10:00:06.257312000Z","level":"`
	const at = `"__REALTIME_TIMESTAMP":"1795168806257312"`
	for _, row := range []struct{ object, want string }{
		{`{` + at + `,"PRIORITY":"3","MESSAGE":[104,105]}`, head + `error","service":"unknown","msg":"hi","PRIORITY":"3"}`},
		{`{"MESSAGE":[ 104 , 195,188 ],"PRIORITY":[54],` + at + `}`, head + `info","service":"unknown","msg":"hü","PRIORITY":"6"}`},
		{`{"MESSAGE":[27,91,51,49,109,120,255],` + at + `}`, head + `","service":"unknown","msg":"\u001b[31mx\\xff"}`},
		{`{"MESSAGE":["a",[98],null],"_CMDLINE":[47,120],` + at + `}`,
			head + `","service":"unknown","msg":"a","MESSAGE.2":"b","MESSAGE.3":null,"_CMDLINE":"/x"}`},
		{`{"A":[300],"B":[1,-1],"C":[],"D":[{"x":1}],"E":[1.5],"tags":[104,105],` + at + `,"MESSAGE":"m"}`,
			head + `","service":"unknown","msg":"m","A":[300],"B":[1,-1],"C":[],"D":[{"x":1}],"E":[1.5],"tags":[104,105]}`},
		{`{"MESSAGE":[104],"SYSLOG_IDENTIFIER":[119,101,98],` + at + `,"X":NaN,"Y":[105]}`,
			head + `","service":"web","msg":"h","X":"NaN","Y":"i"}`},
		{`{"time":1795168806.257312,"MESSAGE":[104,105]}`, head + `","service":"unknown","msg":"[104,105]"}`},
	} {
		p := NewReader()
		n, err := p.Scan([]byte(row.object + "\n"))
		if err != nil || n != len(row.object) {
			t.Fatalf("%s: %d %v", row.object, n, err)
		}
		if line, _ := p.AppendLine(nil, &Defaults{}); string(line) != row.want+"\n" {
			t.Errorf("%s:\n got %s want %s", row.object, line, row.want)
		}
	}
}
