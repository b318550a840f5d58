package logstest

import (
	"fmt"
	"strings"
	"time"
)

// FlowLog makes one blob of a network security group's flow log: one JSON object with an
// array of records, without a newline at its end. o.Lines is the number of records. All
// are on line 1, unless spread puts line breaks between tokens.
func FlowLog(o Options, spread bool) Logs {
	m := newMaker(o, 0x666c6f77)
	const category = "NetworkSecurityGroupFlowEvent"
	group := "/subscriptions/" + m.uuid() + "/resourceGroups/logs/providers/Microsoft.Network/networkSecurityGroups/group"
	m.open("resourceId=" + strings.ToUpper(group) + m.hour() + "macAddress=000D3AF87856/PT1H.json")
	w := writer{maker: m}
	if spread {
		w.spaces = []string{"", " ", "\n", "\r\n", "\n\t"}
	}
	w.space()
	w.token("{")
	w.text("records", false)
	w.token(":")
	w.token("[")
	line, counted := 1, 0 // the line of the byte behind those counted
	for i := range m.o.Lines {
		if i > 0 {
			w.token(",")
		}
		at := m.o.Hour.Add(time.Duration(i) * time.Hour / time.Duration(m.o.Lines)).Truncate(100 * time.Nanosecond)
		fields := object{
			{"systemId", m.uuid()}, {"macAddress", "000D3AF87856"}, {"category", category}, {"resourceId", group},
			{"operationName", category + "s"}, {"properties", m.flows(at)},
		}
		from := w.b.Len()
		w.value(append(object{{"time", clock(at)}}, fields...))
		blank, _, _ := strings.Cut(w.b.String()[from:], "{")
		lines := strings.Count(w.b.String()[counted:from+len(blank)], "\n")
		line, counted = line+lines, from+len(blank)
		m.logs.Want = append(m.logs.Want, Record{
			Place: Place{Key: m.page.key, Line: line}, TS: at.Format("2006-01-02T15:04:05.000000000Z"),
			Level: "info", Msg: category + "s", End: w.b.Len(), fields: fields,
		})
	}
	w.token("]")
	w.token("}")
	m.logs.Blobs = []Blob{{Container: "insights-logs-" + strings.ToLower(category), Key: m.page.key, Body: []byte(w.b.String())}}
	return m.done()
}

// flows are the properties of a record: tuples by rule.
func (m *maker) flows(at time.Time) any {
	var tuples []any
	for range 1 + m.IntN(4) {
		tuples = append(tuples, fmt.Sprintf("%d,10.0.0.%d,203.0.113.%d,%d,443,T,O,A,B,,,,", at.Unix(), m.IntN(256), m.IntN(256), 1024+m.IntN(60000)))
	}
	return object{{"Version", number(2)}, {"flows", []any{
		object{{"rule", `User"Rule"]}\443`}, {"flows", []any{object{{"mac", "000D3AF87856"}, {"flowTuples", tuples}}}}},
		object{{"rule", "DefaultRule_AllowInternetOutBound"}, {"flows", []any{}}},
	}}}
}
