# Servers of the web. Packages of Debian: nginx-light apache2 lighttpd caddy
mkdir www
echo ok >www/orders
fill() { sed -i "s/PORT/$p/; s/GONE/$gone/" "$1"; }

# visit: the requests that each server gets.
visit() {
	get "http://127.0.0.1:$p/orders"
	get -e https://shop.example.com/ "http://127.0.0.1:$p/baskets/7"
	get -d "$(printf '%30000d' 0)" "http://127.0.0.1:$p/payments"
	get "http://127.0.0.1:$p/private"
}

begin server-nginx-error
p=$(port)
fill nginx.conf
TZ=Europe/Vienna serve "$p" nginx -c "$shop/nginx.conf" 2>nginx.stderr
visit
end "$(package nginx nginx-light)"
for form in access json; do
	name=server-nginx-$form log=$shop/nginx-$form.log
	end "$(package nginx nginx-light)"
done
stop
# The error log has no zone: a second run of its own is in UTC.
begin server-nginx-error
rm nginx-error.log
serve "$p" nginx -c "$shop/nginx.conf" 2>nginx.stderr
visit
log=$shop/nginx-error.log
end "$(package nginx nginx-light)"
stop

begin server-nginx-startup
sed 's/listen 127/lisen 127/' nginx.conf >nginx-bad.conf
nginx -t -c "$shop/nginx-bad.conf" 2>"$log" || true
end "$(package nginx nginx-light)"

begin server-apache-error
p=$(port)
fill apache.conf
TZ=Europe/Vienna serve "$p" apache2 -D FOREGROUND -f "$shop/apache.conf" 2>apache.stderr
visit
for form in access vhost; do
	name=server-apache-$form log=$shop/apache-$form.log
	end "$(package Apache apache2)"
done
stop
begin server-apache-error
rm apache-error.log
serve "$p" apache2 -D FOREGROUND -f "$shop/apache.conf" 2>apache.stderr
log=$shop/apache-error.log
visit
end "$(package Apache apache2)"
stop

begin server-lighttpd-error
p=$(port)
fill lighttpd.conf
serve "$p" lighttpd -D -f lighttpd.conf 2>lighttpd.stderr
visit
log=$shop/lighttpd-error.log
end "$(package lighttpd lighttpd)"
stop # which writes the access log
name=server-lighttpd-access log=$shop/lighttpd-access.log
end "$(package lighttpd lighttpd)"

begin server-caddy-2-6
p=$(port)
cat >Caddyfile <<-EOF
	{
		admin off
		auto_https off
	}
	http://127.0.0.1:$p {
		log
		root * www
		file_server
		reverse_proxy /payments 127.0.0.1:$gone
	}
EOF
serve "$p" caddy run --config Caddyfile >"$log" 2>&1
mark
visit
end "$(package Caddy caddy)"
stop
