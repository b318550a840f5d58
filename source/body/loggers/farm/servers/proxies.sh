# Proxies. Packages of Debian: haproxy squid varnish tinyproxy python3
[ -d www ] || mkdir www
echo ok >www/orders
begin backend
back=$(port)
serve "$back" python3 -m http.server -d www -b 127.0.0.1 "$back" >backend.log 2>&1

haproxy=$(package HAProxy haproxy)
for form in raw rfc5424; do
	begin "server-haproxy-$form"
	p=$(port)
	sed "s/PORT/$p/; s/GONE/$back/; s/FORMAT/$form/" haproxy.cfg >haproxy-$form.cfg
	serve "$p" haproxy -f haproxy-$form.cfg >"$log" 2>haproxy.stderr
	mark
	get "http://127.0.0.1:$p/orders"
	get "http://127.0.0.1:$p/private"
	end "$haproxy"
	stop
done

begin server-haproxy-startup
sed "s/PORT/$p/; s/GONE/$gone/; s/FORMAT/raw/; /timeout/d" haproxy.cfg >haproxy-startup.cfg
echo '    nonsense' >>haproxy-startup.cfg
haproxy -c -f haproxy-startup.cfg 2>"$log" || true
end "$haproxy"

begin server-squid-access
p=$(port)
cat >squid.conf <<-EOF
	http_port 127.0.0.1:$p
	visible_hostname proxy1
	http_access allow localhost
	cache_log /dev/null
	access_log stdio:$shop/squid-access.log squid
	pid_filename $shop/squid.pid
	coredump_dir $shop
	cache deny all
	shutdown_lifetime 0 seconds
	pinger_enable off
EOF
touch squid-access.log
chmod 777 . squid-access.log
serve "$p" squid -N -f squid.conf 2>squid.stderr
get -x "127.0.0.1:$p" "http://127.0.0.1:$back/orders"
get -x "127.0.0.1:$p" "http://127.0.0.1:$back/baskets/7"
get -x "127.0.0.1:$p" "http://127.0.0.1:$gone/payments"
log=$shop/squid-access.log
end "$(package Squid squid)"
stop

begin server-squid-cache
cat >squid-bad.conf <<-EOF
	http_access allow friends
EOF
squid -k parse -f squid-bad.conf 2>"$log" || true
last 8
end "$(package Squid squid)"

begin server-tinyproxy
p=$(port)
cat >tinyproxy.conf <<-EOF
	Port $p
	Listen 127.0.0.1
	Timeout 10
	Allow 127.0.0.1
	MaxClients 10
	LogLevel Info
EOF
serve "$p" tinyproxy -d -c tinyproxy.conf >"$log" 2>&1
mark
get -x "127.0.0.1:$p" "http://127.0.0.1:$gone/payments"
end "$(package tinyproxy tinyproxy)"
stop

begin server-varnishncsa
p=$(port)
TZ=Europe/Vienna serve "$p" varnishd -F -a "127.0.0.1:$p" -b "127.0.0.1:$back" -n "$shop/varnish" -s malloc,10m >varnishd.log 2>&1
sleep 1
TZ=Europe/Vienna varnishncsa -n "$shop/varnish" >"$log" 2>varnishncsa.stderr &
pids+=($!)
sleep 2
get "http://127.0.0.1:$p/orders"
get "http://127.0.0.1:$p/baskets/7"
sleep 2
end "$(package Varnish varnish)"
stop
stop
stop
