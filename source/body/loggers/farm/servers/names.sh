# Names, clocks, queues and others. Packages of Debian: unbound dnsmasq-base bind9
# bind9-dnsutils nsd knot pdns-recursor chrony mosquitto mosquitto-clients kea-dhcp4-server
# fail2ban tor freeradius clamav-daemon vsftpd syncthing prometheus
query() { dig +tries=1 +time=1 -p "$p" @127.0.0.1 "$@" >>answer 2>&1 || true; }
zone() { printf '$TTL 60\n@ IN SOA ns1 root 1 60 60 60 60\n@ IN NS ns1\nns1 IN A 192.0.2.1\nshop IN A 192.0.2.7\n'; }
zone >example.com.zone
(zone; echo 'shop IN A 192.0.2') >bad.zone

begin server-unbound
p=$(port)
cat >unbound.conf <<-EOF
	server:
	  interface: 127.0.0.1@$p
	  do-daemonize: no
	  chroot: ""
	  username: ""
	  directory: "$shop"
	  pidfile: ""
	  use-syslog: no
	  log-queries: yes
	  log-local-actions: yes
	  local-zone: "example.com." static
	  local-data: "shop.example.com. A 192.0.2.7"
	remote-control:
	  control-enable: no
EOF
serve "$p" unbound -d -c unbound.conf >"$log" 2>&1
last 2
query shop.example.com A
query nothing.example.com A
end "$(package Unbound unbound)"
stop

begin server-dnsmasq
p=$(port)
serve "$p" dnsmasq -k -C /dev/null --no-resolv --no-hosts -p "$p" -a 127.0.0.1 -i lo --bind-interfaces --log-queries \
	--log-facility="$log" --address=/shop.example.com/192.0.2.7 --pid-file= -u root >dnsmasq.stderr 2>&1
last 2
query shop.example.com A
query shop.example.com MX
end "$(package dnsmasq dnsmasq-base)"
stop

begin server-bind
p=$(port)
for form in '' -stderr; do
	cat >named$form.conf <<-EOF
		options { directory "$shop"; listen-on port $p { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; pid-file none;
			session-keyfile none; managed-keys-directory "$shop"; };
		controls { };
		zone "example.com" { type primary; file "example.com.zone"; };
		zone "example.net" { type primary; file "bad.zone"; };
	EOF
done
cat >>named.conf <<-EOF
	logging { channel shop { file "$log"; print-time yes; print-severity yes; print-category yes; };
		category default { null; }; category zoneload { shop; }; category queries { shop; }; category general { shop; }; };
EOF
serve "$p" named -f -c "$shop/named.conf" 2>named.stderr
sleep 1
last 5
query shop.example.com A
end "$(package BIND bind9)"
stop
begin server-bind-stderr
serve "$p" named -g -c "$shop/named-stderr.conf" >"$log" 2>&1
sleep 1
last 6
end "$(package BIND bind9)"
stop

begin server-nsd
p=$(port)
cat >nsd.conf <<-EOF
	server:
	  ip-address: 127.0.0.1@$p
	  username: ""
	  zonesdir: "$shop"
	  database: ""
	  pidfile: "$shop/nsd.pid"
	  xfrdfile: "$shop/xfrd.state"
	  zonelistfile: "$shop/zone.list"
	  server-count: 1
	remote-control:
	  control-enable: no
	zone:
	  name: example.com
	  zonefile: example.com.zone
	zone:
	  name: example.net
	  zonefile: bad.zone
EOF
serve "$p" nsd -d -c nsd.conf >"$log" 2>&1
sleep 1
end "$(package NSD nsd)"
stop

begin server-knot
p=$(port)
cat >knot.conf <<-EOF
	server:
	    rundir: "$shop"
	    listen: 127.0.0.1@$p
	    background-workers: 1
	database:
	    storage: "$shop/knotdb"
	log:
	  - target: stdout
	    any: info
	template:
	  - id: default
	    storage: "$shop"
	    file: "%s.zone"
	zone:
	  - domain: example.com
	  - domain: example.net
	    file: bad.zone
EOF
serve "$p" knotd -c knot.conf >"$log" 2>&1
sleep 1
last 5
end "$(package 'Knot DNS' knot)"
stop

begin server-chrony
timeout 3 chronyd -d -Q 'server 127.0.0.1 iburst' 'port 0' 'cmdport 0' >"$log" 2>&1 || true
end "$(package chrony chrony)"

begin server-mosquitto
p=$(port)
serve "$p" mosquitto -p "$p" >"$log" 2>&1
mark
mosquitto_pub -p "$p" -i web1 -t orders -m 1001
end "$(package mosquitto mosquitto)"
stop

begin server-tor
printf 'SocksPort 0\nDisableNetwork 1\nDataDirectory %s/tor\nNoSuchOption 1\n' "$shop" >torrc
tor --defaults-torrc /dev/null -f torrc >"$log" 2>&1 || true
end "$(package Tor tor)"

begin server-kea
p=$(port)
cat >kea.json <<-EOF
	{"Dhcp4": {"interfaces-config": {"interfaces": []}, "lease-database": {"type": "memfile", "persist": false},
	 "subnet4": [{"subnet": "192.0.2.0/24", "pools": [{"pool": "192.0.2.10 - 198.51.100.9"}]}]}}
EOF
KEA_PIDFILE_DIR=$shop KEA_LOCKFILE_DIR=$shop kea-dhcp4 -c kea.json >"$log" 2>&1 || true
last 5
end "$(package Kea kea-dhcp4-server)"

begin server-freeradius
timeout 5 freeradius -f -l stdout -d /etc/freeradius/3.0 -n nosuch >"$log" 2>&1 || true
end "$(package FreeRADIUS freeradius)"

begin server-clamd
printf 'LogTime yes\nForeground yes\nDatabaseDirectory %s/none\nTCPSocket %s\nTCPAddr 127.0.0.1\nLogFile %s\n' "$shop" "$p" "$log" >clamd.conf
clamd -c "$shop/clamd.conf" >clamd.stderr 2>&1 || true
last 4
end "$(package ClamAV clamav-daemon)"

begin server-fail2ban
mkdir f2b
cp -r /etc/fail2ban/{action.d,filter.d} f2b/
printf '[Definition]\nloglevel = INFO\nlogtarget = %s\nsyslogsocket = auto\nsocket = %s\npidfile = %s\ndbfile = None\ndbpurgeage = 1d\ndbmaxmatches = 10\n' \
	"$log" "$shop/f2b.sock" "$shop/f2b.pid" >f2b/fail2ban.conf
printf '[DEFAULT]\nbackend = polling\nbanaction = dummy\n[sshd]\nenabled = true\nfilter = sshd\nlogpath = %s\nmaxretry = 2\n[shop]\nenabled = true\nfilter = nosuch\nlogpath = %s\n' \
	"$shop/auth.log" "$shop/auth.log" >f2b/jail.conf
touch auth.log
fail2ban-server -f -c f2b start >f2b.stderr 2>&1 &
pids+=($!)
sleep 3
last 4
end "$(package Fail2ban fail2ban)"
stop

begin server-vsftpd
p=$(port)
mkdir -p ftp ftp-empty
cat >vsftpd.conf <<-EOF
	listen=YES
	listen_address=127.0.0.1
	listen_port=$p
	background=NO
	anonymous_enable=YES
	anon_root=$shop/ftp
	secure_chroot_dir=$shop/ftp-empty
	vsftpd_log_file=$log
	xferlog_enable=YES
	seccomp_sandbox=NO
EOF
echo 1001 >ftp/orders
serve "$p" vsftpd vsftpd.conf >vsftpd.out 2>&1
mark
get "ftp://127.0.0.1:$p/orders"
get "ftp://127.0.0.1:$p/baskets"
end "$(package vsftpd vsftpd)"
stop

begin server-syncthing
unshare --net syncthing generate --home "$shop/syncthing" --no-default-folder >"$log" 2>&1
end "$(package Syncthing syncthing)"

begin server-prometheus-2
p=$(port)
printf 'scrape_configs: []\n' >prometheus.yml
serve "$p" prometheus --config.file prometheus.yml --storage.tsdb.path "$shop/prometheus" --web.listen-address "127.0.0.1:$p" --web.enable-lifecycle >"$log" 2>&1
mark
echo 'scrape_configs: 7' >prometheus.yml
get -X POST "http://127.0.0.1:$p/-/reload"
printf 'scrape_configs: []\n' >prometheus.yml
get -X POST "http://127.0.0.1:$p/-/reload"
end "$(package Prometheus prometheus)"
stop
