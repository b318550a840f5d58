package syslog_test

import (
	"testing"
	"time"

	"blobtail/source/syslog"
)

// Lines as real devices and programs send them, and the records that they become.
func TestDevices(t *testing.T) {
	const now = `{"ts":"2026-11-20T15:30:00.000000000Z","level":`
	for _, row := range []struct{ name, line, want string }{
		{"RFC 5424", `<34>1 2026-11-20T15:04:05.003Z mymachine.example.com su - ID47 - ` + "\xef\xbb\xbf" + `'su root' failed`,
			`{"ts":"2026-11-20T15:04:05.003000000Z","level":"critical","service":"su","msg":"'su root' failed","host":"mymachine.example.com","facility":"auth","msgid":"ID47"}`},
		{"RFC 5424 with data alone", `<165>1 2026-11-20T15:04:05.000003-07:00 192.0.2.1 myproc 8710 - [ex@32473 iut="3" src="a\"b\]c\\"][prio@32473 class="high"]`,
			`{"ts":"2026-11-20T22:04:05.000003000Z","level":"info","service":"myproc","msg":"","host":"192.0.2.1","facility":"local4","procid":"8710","ex@32473.iut":"3","ex@32473.src":"a\"b]c\\","prio@32473.class":"high"}`},
		{"RFC 5424 without anything", `<13>1 - - - - - -`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"syslog","msg":"","facility":"user"}`},
		{"logger of util-linux", `<13>1 2026-11-20T15:04:05.123456+00:00 build7 root 4711 - [timeQuality tzKnown="1" isSynced="1" syncAccuracy="340500"] hello there`,
			`{"ts":"2026-11-20T15:04:05.123456000Z","level":"info","service":"root","msg":"hello there","host":"build7","facility":"user","procid":"4711","timeQuality.tzKnown":"1","timeQuality.isSynced":"1","timeQuality.syncAccuracy":"340500"}`},
		{"a parameter twice", `<13>1 - h a - - [origin ip="10.0.0.1" ip="10.0.0.2" ip="10.0.0.3"] x`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"a","msg":"x","host":"h","facility":"user","origin.ip":"10.0.0.1","origin.ip.2":"10.0.0.2","origin.ip.3":"10.0.0.3"}`},
		{"an element alone", `<13>1 - h a - - [lonely@1][also@2] x`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"a","msg":"x","host":"h","facility":"user","sd":"lonely@1","sd.2":"also@2"}`},
		{"data with our own names", `<13>1 - h a - - [service name="x"][ts original="y"] m`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"a","msg":"m","host":"h","facility":"user","service.name":"x","ts.original":"y"}`},
		{"malformed data", `<13>1 2026-11-20T15:04:05Z h a - - [x y=1] text`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"a","msg":"[x y=1] text","host":"h","facility":"user"}`},
		{"data left out", `<13>1 2026-11-20T15:04:05Z h a 7 - text - and more`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"a","msg":"text - and more","host":"h","facility":"user","procid":"7"}`},
		{"Juniper, structured", `<14>1 2026-11-20T15:04:05.314Z srx1 RT_FLOW - RT_FLOW_SESSION_CREATE [junos@2636.1.1.1.2.40 source-address="10.0.0.9" source-port="53124"] session created`,
			`{"ts":"2026-11-20T15:04:05.314000000Z","level":"info","service":"rt_flow","msg":"session created","host":"srx1","facility":"user","msgid":"RT_FLOW_SESSION_CREATE","junos@2636.1.1.1.2.40.source-address":"10.0.0.9","junos@2636.1.1.1.2.40.source-port":"53124","service.name":"RT_FLOW"}`},
		{"Juniper, standard", `<28>Nov 20 15:04:05  mx1 mib2d[2081]: SNMP_TRAP_LINK_DOWN: ifIndex 520, ifName xe-0/0/1`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"warn","service":"mib2d","msg":"SNMP_TRAP_LINK_DOWN: ifIndex 520, ifName xe-0/0/1","host":"mx1","facility":"daemon","procid":"2081"}`},
		{"Cisco IOS", `<189>45: *Nov 20 15:04:05.123: %SYS-5-CONFIG_I: Configured from console by vty0 (10.0.0.1)`,
			`{"ts":"2026-11-20T15:04:05.123000000Z","level":"info","service":"syslog","msg":"%SYS-5-CONFIG_I: Configured from console by vty0 (10.0.0.1)","facility":"local7","msgid":"SYS-5-CONFIG_I","seq":"45"}`},
		{"Cisco IOS with its name and zone", `<187>46: rtr1: Nov 20 15:04:05.123 CET: %LINK-3-UPDOWN: Interface Gi0/1, changed state to up`,
			`{"ts":"2026-11-20T14:04:05.123000000Z","level":"error","service":"syslog","msg":"%LINK-3-UPDOWN: Interface Gi0/1, changed state to up","host":"rtr1","facility":"local7","msgid":"LINK-3-UPDOWN","seq":"46"}`},
		{"Cisco IOS with an offset in its zone", `<189>1017: sw7: Nov 20 15:04:05.123 UTC+1: %DOT1X-5-FAIL: x`,
			`{"ts":"2026-11-20T14:04:05.123000000Z","level":"info","service":"syslog","msg":"%DOT1X-5-FAIL: x","host":"sw7","facility":"local7","msgid":"DOT1X-5-FAIL","seq":"1017"}`},
		{"Cisco IOS with an offset behind letters of its own", `<189>93: *Nov 20 15:04:05.663 Office-03:30: %SYS-5-CONFIG_I: x`,
			`{"ts":"2026-11-20T18:34:05.663000000Z","level":"info","service":"syslog","msg":"%SYS-5-CONFIG_I: x","facility":"local7","msgid":"SYS-5-CONFIG_I","seq":"93"}`},
		{"Cisco IOS with a zone of its own", `<189>93: *Nov 20 15:04:05.663 Vienna: %SYS-5-CONFIG_I: x`,
			`{"ts":"2026-11-20T15:04:05.663000000Z","level":"info","service":"syslog","msg":"%SYS-5-CONFIG_I: x","facility":"local7","msgid":"SYS-5-CONFIG_I","seq":"93"}`},
		{"Cisco WLC", `<187>84: Nov 20 15:04:05.778 TZ: *%LWAPP-3-REPLAY_ERR: x`,
			`{"ts":"2026-11-20T15:04:05.778000000Z","level":"error","service":"syslog","msg":"*%LWAPP-3-REPLAY_ERR: x","facility":"local7","msgid":"LWAPP-3-REPLAY_ERR","seq":"84"}`},
		{"Cisco ISE, a space behind the priority", `<181> Nov 20 15:04:05 ise7 CISE_Passed 0000012345 1 0 x`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"CISE_Passed 0000012345 1 0 x","host":"ise7","facility":"local6"}`},
		{"a space before the priority", ` <34>Nov 20 15:04:05 web1 su[812]: x`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"critical","service":"su","msg":"x",` +
				`"host":"web1","facility":"auth","procid":"812"}`},
		{"blanks before the priority of RFC 5424", "\t  " + `<34>1 2026-11-20T15:04:05Z web1 su 812 - -  x`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"critical","service":"su","msg":" x",` +
				`"host":"web1","facility":"auth","procid":"812"}`},
		{"a space before no priority", ` <x>Nov 20 15:04:05 web1 su[812]: y`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"","service":"syslog","msg":" <x>Nov 20 15:04:05 web1 su[812]: y"}`},
		{"spaces in RFC 5424", `<30>1  2026-11-20T15:04:05.089+00:00 box7 db  8 -  - x`,
			`{"ts":"2026-11-20T15:04:05.089000000Z","level":"info","service":"db","msg":"x","host":"box7","facility":"daemon","procid":"8"}`},
		{"a space in the time of RFC 5424", `<13>1 2026-11-20 15:04:05 h app 1 - - x`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"app","msg":"x","host":"h","facility":"user","procid":"1"}`},
		{"a date alone in RFC 5424", `<13>1 2026-11-20 h app 1 - - x`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"app","msg":"1 2026-11-20 h app 1 - - x","host":"h","facility":"user","procid":"1"}`},
		{"a time that is none in RFC 5424", `<11>1 2026-13-20T15:04:05Z h app 1 ID [a b="c"] x`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"error","service":"app","msg":"1 2026-13-20T15:04:05Z h app 1 ID [a b=\"c\"] x","host":"h","facility":"user","procid":"1","msgid":"ID","a.b":"c"}`},
		{"a number and words behind a priority", `<14>1 of 5 jobs are done by now`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"syslog","msg":"1 of 5 jobs are done by now","facility":"user"}`},
		{"Meraki", `<134>1 1795187045.257000000 MX84 events type=vpn_connectivity_change`,
			`{"ts":"2026-11-20T15:04:05.257000000Z","level":"info","service":"syslog","msg":"events type=vpn_connectivity_change","host":"MX84","facility":"local0"}`},
		{"half an hour in the zone of Cisco", `<189>: Nov 20 09:34:05 UTC-5:30: %SYS-5-CONFIG_I: x`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"%SYS-5-CONFIG_I: x","facility":"local7","msgid":"SYS-5-CONFIG_I"}`},
		{"a month ahead, without a year", `<11>Dec 28 00:00:12 esp32 app: x`,
			`{"ts":"2025-12-28T00:00:12.000000000Z","level":"error","service":"app","msg":"x","host":"esp32","facility":"user"}`},
		{"a leap day without a year", `<11>Feb 29 00:00:12 esp32 app: x`,
			`{"ts":"2024-02-29T00:00:12.000000000Z","level":"error","service":"app","msg":"x","host":"esp32","facility":"user"}`},
		{"Cisco IOS XR", `<187>12345: xr1 RP/0/RSP0/CPU0:Nov 20 15:04:05.123 : ifmgr[215]: %PKT_INFRA-LINK-3-UPDOWN : Interface up`,
			`{"ts":"2026-11-20T15:04:05.123000000Z","level":"error","service":"ifmgr","msg":"%PKT_INFRA-LINK-3-UPDOWN : Interface up","host":"xr1","facility":"local7","procid":"215","msgid":"PKT_INFRA-LINK-3-UPDOWN","seq":"12345","node":"RP/0/RSP0/CPU0"}`},
		{"Cisco IOS XR without its name", `<187>12345: RP/0/RSP0/CPU0:Nov 20 15:04:05.123 : ifmgr[215]: %PKT_INFRA-LINK-3-UPDOWN : Interface up`,
			`{"ts":"2026-11-20T15:04:05.123000000Z","level":"error","service":"ifmgr","msg":"%PKT_INFRA-LINK-3-UPDOWN : Interface up","facility":"local7","procid":"215","msgid":"PKT_INFRA-LINK-3-UPDOWN","seq":"12345","node":"RP/0/RSP0/CPU0"}`},
		{"Cisco Nexus", `<189>: 2026 Nov 20 15:04:05 UTC: %ETHPORT-5-IF_UP: Interface Ethernet1/1 is up`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"%ETHPORT-5-IF_UP: Interface Ethernet1/1 is up","facility":"local7","msgid":"ETHPORT-5-IF_UP"}`},
		{"Cisco ASA", `<166>Nov 20 2026 15:04:05: %ASA-6-302013: Built inbound TCP connection 1 for outside:1.2.3.4/80`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"%ASA-6-302013: Built inbound TCP connection 1 for outside:1.2.3.4/80","facility":"local4","msgid":"ASA-6-302013"}`},
		{"Cisco ASA with its name", `<166>Nov 20 2026 15:04:05 asa1 : %ASA-6-302013: Built`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"%ASA-6-302013: Built","host":"asa1","facility":"local4","msgid":"ASA-6-302013"}`},
		{"Huawei", `<189>Nov 20 2026 15:04:05 core1 %%01SHELL/5/LOGIN(l)[0]:VTY login succeeded`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"%%01SHELL/5/LOGIN(l)[0]:VTY login succeeded","host":"core1","facility":"local7"}`},
		{"pfSense, BSD", `<134>Nov 20 15:04:05 filterlog[12345]: 5,,,1000000103,igb0,match,block,in,4`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"filterlog","msg":"5,,,1000000103,igb0,match,block,in,4","facility":"local0","procid":"12345"}`},
		{"pfSense, RFC 5424", `<134>1 2026-11-20T15:04:05.003+00:00 pfSense.home filterlog 12345 - - 5,,,1000`,
			`{"ts":"2026-11-20T15:04:05.003000000Z","level":"info","service":"filterlog","msg":"5,,,1000","host":"pfSense.home","facility":"local0","procid":"12345"}`},
		{"FortiGate", `<189>date=2026-11-20 time=15:04:05 devname="fg1" level="notice" type="traffic"`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"date=2026-11-20 time=15:04:05 devname=\"fg1\" level=\"notice\" type=\"traffic\"","facility":"local7"}`},
		{"MikroTik", `<30>system,info,account user admin logged in from 10.0.0.1 via ssh`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"syslog","msg":"system,info,account user admin logged in from 10.0.0.1 via ssh","facility":"daemon"}`},
		{"rsyslog, RSYSLOG_TraditionalForwardFormat", `<86>Nov  2 05:04:05 web1 sshd[812]: Accepted publickey for root`,
			`{"ts":"2026-11-02T05:04:05.000000000Z","level":"info","service":"sshd","msg":"Accepted publickey for root","host":"web1","facility":"authpriv","procid":"812"}`},
		{"rsyslog, RSYSLOG_ForwardFormat", `<13>2026-11-20T15:04:05.123456+01:00 web1 CRON[7]: (root) CMD (x)`,
			`{"ts":"2026-11-20T14:04:05.123456000Z","level":"info","service":"cron","msg":"(root) CMD (x)","host":"web1","facility":"user","procid":"7","service.name":"CRON"}`},
		{"rsyslog, SyslogProtocol23", `<30>1 2026-11-20T15:04:05.123456+01:00 web1 systemd 1 - - Started Session 3`,
			`{"ts":"2026-11-20T14:04:05.123456000Z","level":"info","service":"systemd","msg":"Started Session 3","host":"web1","facility":"daemon","procid":"1"}`},
		{"rsyslog about itself", `<46>Nov 20 15:04:05 web1 rsyslogd: [origin software="rsyslogd" swVersion="8.2302.0"] start`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"rsyslogd","msg":"[origin software=\"rsyslogd\" swVersion=\"8.2302.0\"] start","host":"web1","facility":"syslog"}`},
		{"syslog-ng", `<22>Nov 20 15:04:05 mx.example.com postfix/smtpd[9]: connect from unknown[10.0.0.1]`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"postfix-smtpd","msg":"connect from unknown[10.0.0.1]","host":"mx.example.com","facility":"mail","procid":"9","service.name":"postfix/smtpd"}`},
		{"an address for a host", `<13>Nov 20 15:04:05 fe80::1 app: x`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"app","msg":"x","host":"fe80::1","facility":"user"}`},
		{"one space before the day", `<13>Nov 2 15:04:05 web1 app: x`,
			`{"ts":"2026-11-02T15:04:05.000000000Z","level":"info","service":"app","msg":"x","host":"web1","facility":"user"}`},
		{"a year behind the clock", `<13>Nov 20 15:04:05 2025 web1 app: x`,
			`{"ts":"2025-11-20T15:04:05.000000000Z","level":"info","service":"app","msg":"x","host":"web1","facility":"user"}`},
		{"an offset behind the clock", `<13>Nov 20 2026 15:04:05.5 +0530 web1 app: x`,
			`{"ts":"2026-11-20T09:34:05.500000000Z","level":"info","service":"app","msg":"x","host":"web1","facility":"user"}`},
		{"no tag", `<13>Nov 20 15:04:05 web1 the disk is full: 99 %`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"the disk is full: 99 %","host":"web1","facility":"user"}`},
		{"the last message again", `<13>Nov 20 15:04:05 last message repeated 3 times`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"last message repeated 3 times","facility":"user"}`},
		{"time and text alone", `<13>Nov 20 15:04:05 hello`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"syslog","msg":"hello","facility":"user"}`},
		{"Python's SysLogHandler", `<14>just a text`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"syslog","msg":"just a text","facility":"user"}`},
		{"Python's SysLogHandler with an ident", `<12>shop.db: disk & cpu: full`,
			now + `"warn","service":"shop.db","msg":"disk & cpu: full","facility":"user"}`},
		{"a level is no tag", `<14>error: no`,
			now + `"error","service":"syslog","msg":"error: no","facility":"user"}`},
		{"an exception is no tag", `<11>ValueError: no`,
			now + `"error","service":"syslog","msg":"ValueError: no","facility":"user"}`},
		{"no tag without a priority", `shop: x`, now + `"","service":"syslog","msg":"shop: x"}`},
		{"pino-socket", `{"level":30,"time":1795188605123,"hostname":"vm","name":"shop","msg":"hello"}`,
			`{"ts":"2026-11-20T15:30:05.123000000Z","level":"info","service":"shop","msg":"hello","hostname":"vm","name":"shop"}`},
		{"JSON of a service of its own", `<11>{"service":"pay","name":"root","msg":"a","host":"inner"} `,
			now + `"error","service":"pay","msg":"a","name":"root","host":"inner","facility":"user"}`},
		{"pino-syslog", `<134>1 2026-11-20T15:30:00Z vm - 23328 - - {"level":30,"time":1795188605123,"name":"shop","msg":"a"}`,
			`{"ts":"2026-11-20T15:30:05.123000000Z","level":"info","service":"shop","msg":"a",` +
				`"name":"shop","host":"vm","facility":"local0","procid":"23328"}`},
		{"JSON of no application, and of no time", `<11>1 2026-11-20T15:30:00Z vm - - - - {"name":"shop","msg":"a"}`,
			now + `"error","service":"shop","msg":"a","name":"shop","host":"vm","facility":"user"}`},
		{"JSON behind a tag", `<11>shop: {"name":"root","levelname":"WARNING","msg":"a"}`,
			now + `"warn","service":"shop","msg":"a","name":"root","facility":"user"}`},
		{"JSON and more", `<11>{"msg":"a"} b`,
			now + `"error","service":"syslog","msg":"{\"msg\":\"a\"} b","facility":"user"}`},
		{"JSON with a service behind a tag", `<11>shop: {"service":"billing","msg":"a"}`,
			now + `"error","service":"shop","msg":"a","facility":"user","service.original":"billing"}`},
		{"JSON with the service of the tag", `<11>shop: {"service":"shop","msg":"a"}`,
			now + `"error","service":"shop","msg":"a","facility":"user"}`},
		{"JSON with a service without a tag", `<11>{"service":"Billing","msg":"a"}`,
			now + `"error","service":"billing","msg":"a","facility":"user","service.name":"Billing"}`},
		{"a tag with a number", `<14>worker[31]: job done`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"worker","msg":"job done","facility":"user","procid":"31"}`},
		{"the kernel's own", `<6>[  12.345678] usb 1-1: new device`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"syslog","msg":"[  12.345678] usb 1-1: new device","facility":"kern"}`},
		{"no priority", `Nov 20 15:04:05 web1 app[12]: hello`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"","service":"app","msg":"hello","host":"web1","procid":"12"}`},
		{"a log that is no syslog", `2026-11-20 15:04:05,250 WARN [pool-1] again`,
			`{"ts":"2026-11-20T15:04:05.250000000Z","level":"warn","service":"syslog","msg":"WARN [pool-1] again"}`},
		{"a number and words", `12 - one two three four five`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"","service":"syslog","msg":"12 - one two three four five"}`},
		{"a priority beyond all", `<192>Nov 20 15:04:05 web1 app: hello`,
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"","service":"syslog","msg":"<192>Nov 20 15:04:05 web1 app: hello"}`},
		{"no syslog at all", `GET please`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"","service":"syslog","msg":"GET please"}`},
		{"no UTF-8", "<11>Nov 20 15:04:05 web1 app: caf\xe9\x01",
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"app","msg":"caf\\xe9\u0001","host":"web1","facility":"user"}`},
		{"a day that is none", `<13>Feb 30 15:04:05 web1 app: x`,
			`{"ts":"2026-11-20T15:30:00.000000000Z","level":"info","service":"syslog","msg":"Feb 30 15:04:05 web1 app: x","facility":"user"}`},
		{"indented text", "<13>Nov 20 15:04:05 web1 app:   at x",
			`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"app","msg":"  at x","host":"web1","facility":"user"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := joined(stored(t, syslog.Options{}, row.line+"\n")); got != row.want+"\n" {
				t.Errorf("got  %swant %s", got, row.want)
			}
		})
	}
}

// A time without a year has the year nearest to its arrival, and one without a zone the
// zone of the setting.
func TestYearAndZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		now     string
		zone    *time.Location
		stamp   string
		want    string
		message string
	}{
		{name: "the old year, just after it", now: "2027-01-01T00:00:10Z", stamp: "Dec 31 23:59:58", want: "2026-12-31T23:59:58.000000000Z"},
		{name: "the new year, just before it", now: "2026-12-31T23:59:50Z", stamp: "Jan  1 00:00:01", want: "2027-01-01T00:00:01.000000000Z"},
		{name: "a leap day", now: "2025-03-01T00:00:00Z", stamp: "Feb 29 12:00:00", want: "2024-02-29T12:00:00.000000000Z"},
		{name: "winter", now: "2026-11-20T15:00:00Z", zone: berlin, stamp: "Nov 20 15:04:05", want: "2026-11-20T14:04:05.000000000Z"},
		{name: "summer", now: "2026-07-20T15:00:00Z", zone: berlin, stamp: "Jul 20 15:04:05", want: "2026-07-20T13:04:05.000000000Z"},
		{name: "a zone of its own", now: "2026-07-20T15:00:00Z", zone: berlin, stamp: "Jul 20 15:04:05 UTC", want: "2026-07-20T15:04:05.000000000Z"},
		{name: "ISO without a zone", now: "2026-07-20T15:00:00Z", zone: berlin, stamp: "2026-07-20T15:04:05.5", want: "2026-07-20T13:04:05.500000000Z"},
		{name: "ISO with a space", now: "2026-07-20T15:00:00Z", zone: berlin, stamp: "2026-07-20 15:04:05", want: "2026-07-20T13:04:05.000000000Z"},
		{name: "ISO with a zone", now: "2026-07-20T15:00:00Z", zone: berlin, stamp: "2026-07-20T15:04:05Z", want: "2026-07-20T15:04:05.000000000Z"},
		{name: "a leap second", now: "2026-07-20T15:00:00Z", stamp: "Jul 20 15:04:60", want: "2026-07-20T15:05:00.000000000Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, row.now)
			if err != nil {
				t.Fatal(err)
			}
			o := syslog.Options{Zone: row.zone, Now: func() time.Time { return now }}
			want := `{"ts":"` + row.want + `","level":"info","service":"app","msg":"x","host":"h","facility":"user"}` + "\n"
			if got := joined(stored(t, o, "<13>"+row.stamp+" h app: x\n")); got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}
