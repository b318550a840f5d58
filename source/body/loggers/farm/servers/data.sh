# Stores of data. Packages of Debian: redis-server memcached postgresql mariadb-server
begin server-redis
p=$(port)
cat >redis.conf <<-EOF
	port $p
	bind 127.0.0.1
	save ""
	dir $shop
	always-show-logo no
EOF
serve "$p" redis-server redis.conf >"$log" 2>&1
last 1
redis-cli -p "$p" config set maxmemory 1 >answer
redis-cli -p "$p" shutdown nosave
end "$(package Redis redis-server)"
stop

begin server-memcached
p=$(port)
serve "$p" setpriv --reuid nobody --regid nogroup --clear-groups memcached -vv -l 127.0.0.1 -p "$p" 2>"$log"
mark
exec 4<>"/dev/tcp/127.0.0.1/$p"
printf 'set order:1001 0 60 6\r\nplaced\r\nquit\r\n' >&4
cat <&4 >answer
exec 4>&-
end "$(package memcached memcached)"
stop

# PostgreSQL: one server, three destinations of its log.
begin server-postgresql
bin=$(echo /usr/lib/postgresql/*/bin)
mkdir pg
chown postgres: pg
as=(setpriv --reuid postgres --regid postgres --clear-groups)
"${as[@]}" "$bin/initdb" -D pg/data -A trust -E UTF8 --locale C >initdb.log
p=$(port)
cat >>pg/data/postgresql.conf <<-EOF
	listen_addresses = '127.0.0.1'
	port = $p
	unix_socket_directories = '$shop/pg'
	logging_collector = on
	log_destination = 'stderr,csvlog,jsonlog'
	log_directory = '$shop/pg'
	log_filename = 'server.log'
	log_timezone = 'ZONE'
EOF
# ask SQL...: each statement in a session of its own.
ask() {
	for sql in "$@"; do
		psql -h 127.0.0.1 -p "$p" -U postgres -c "$sql" >>answer 2>&1 || true
	done
}
for zone in UTC Europe/Vienna; do
	sed -i "s|^log_timezone.*|log_timezone = '$zone'|" pg/data/postgresql.conf
	rm -f pg/server.*
	serve "$p" "${as[@]}" "$bin/postgres" -D pg/data >postgres.log 2>&1
	log=$shop/pg/server.log
	ask 'create table if not exists orders (id int primary key, cents int check (cents > 0))'
	mark
	begun=$from csv=$(stat -c %s pg/server.csv) json=$(stat -c %s pg/server.json)
	ask 'insert into orders values (1002, -5)' $'select *\nfrom baskets' \
		"do 'begin raise warning ''article 4711 is nearly sold out''; end'"
	psql -h 127.0.0.1 -p "$p" -U clerk -d postgres -c 'select 1' >>answer 2>&1 || true
	if [ "$zone" = UTC ]; then
		name=server-postgresql
		end "$(package PostgreSQL postgresql-15)"
		name=server-postgresql-csv log=$shop/pg/server.csv skip=$csv
		end "$(package PostgreSQL postgresql-15)"
		name=server-postgresql-json log=$shop/pg/server.json skip=$json
		end "$(package PostgreSQL postgresql-15)"
	else
		name=server-postgresql-zone
		end "$(package PostgreSQL postgresql-15)"
	fi
	stop
	begin server-postgresql
done

begin server-mariadb-10-error
mkdir maria
chown mysql: maria
mariadb-install-db --no-defaults --user=mysql --datadir="$shop/maria/data" --auth-root-authentication-method=normal >mariadb.install 2>&1
p=$(port)
serve "$p" mariadbd --no-defaults --user mysql --datadir "$shop/maria/data" --socket "$shop/maria/socket" --pid-file "$shop/maria/pid" \
	--bind-address 127.0.0.1 --port "$p" --log-warnings=4 --slow-query-log=1 --long-query-time=0.2 --slow-query-log-file="$shop/maria/slow.log" >"$log" 2>&1
last 3
ask() { mariadb --no-defaults -S "$shop/maria/socket" -u root "$@" >>answer 2>&1 || true; }
mariadb --no-defaults -h 127.0.0.1 -P "$p" -u clerk -pnone -e 'select 1' >>answer 2>&1 || true
end "$(package MariaDB mariadb-server)"
name=server-mariadb-10-slow log=$shop/maria/slow.log
mark
ask -e 'create database shop; use shop; create table orders (id int); insert into orders values (1001); select id from orders where sleep(0.3) = 0;'
sleep 1
ask -D shop -e $'select id\nfrom orders\nwhere sleep(0.3) = 0;'
end "$(package MariaDB mariadb-server)"
stop
