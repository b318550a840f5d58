# Clusters and runtimes. Packages of Debian: etcd-server rabbitmq-server zookeeper containerd
# erlang-base
for form in capnslog zap; do
	begin "server-etcd-3-4-$form"
	p=$(port)
	serve "$p" etcd --data-dir "$shop/etcd-$form" --name web1 --listen-client-urls "http://127.0.0.1:$p" \
		--advertise-client-urls "http://127.0.0.1:$p" --listen-peer-urls "http://127.0.0.1:$gone" \
		--initial-advertise-peer-urls "http://127.0.0.1:$gone" --initial-cluster "web1=http://127.0.0.1:$gone" \
		--logger "$form" --log-outputs stderr >"$log" 2>&1
	sleep 1
	last 4
	end "$(package etcd etcd-server)"
	stop
done

begin server-zookeeper-3-8
p=$(port)
mkdir -p zk/data
cp /etc/zookeeper/conf/log4j.properties zk/
printf 'tickTime=2000\ndataDir=%s/zk/data\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n' "$shop" "$p" >zk/zoo.cfg
serve "$p" java -Dzookeeper.root.logger=INFO,CONSOLE -cp zk:/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar \
	org.apache.zookeeper.server.quorum.QuorumPeerMain zk/zoo.cfg >"$log" 2>&1
sleep 1
last 2
get "http://127.0.0.1:$p/"
sleep 1
end "$(package ZooKeeper zookeeper)"
stop

begin server-containerd-1-6
printf 'version = 2\nroot = "%s/containerd/root"\nstate = "%s/containerd/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "%s/containerd.sock"\n' \
	"$shop" "$shop" "$shop" >containerd.toml
TZ=Europe/Vienna containerd -c containerd.toml >"$log" 2>&1 &
pids+=($!)
sleep 2
last 4
end "$(package containerd containerd)"
stop

begin erlang-25
cat >shop.erl <<-'EOF'
	-module(shop).
	-export([main/0]).
	main() ->
	    logger:set_primary_config(level, info),
	    logger:info("order ~p placed", [1001]),
	    logger:warning("article ~p is nearly sold out", [4711]),
	    logger:error("card of order ~p declined~nby its bank", [1001]),
	    logger:critical(#{what => "no connection", to => bank}),
	    timer:sleep(300).
EOF
erlc shop.erl
erl -noshell -s shop main -s init stop >"$log" 2>&1
end "Erlang/OTP $(erl -noshell -eval 'io:format("~s", [erlang:system_info(otp_release)]), halt().')"

begin erlang-25-crash
cat >till.erl <<-'EOF'
	-module(till).
	-export([main/0, charge/1]).
	charge(Cents) when Cents > 0 -> ok.
	main() ->
	    spawn(fun() -> ok = charge(-5) end),
	    timer:sleep(200),
	    logger:notice("till closed"),
	    timer:sleep(200).
EOF
erlc till.erl
erl -noshell -s till main -s init stop >"$log" 2>&1
end "Erlang/OTP $(erl -noshell -eval 'io:format("~s", [erlang:system_info(otp_release)]), halt().')"

for form in plaintext json; do
	begin "server-rabbitmq-3-10-$form"
	p=$(port)
	dist=$(port)
	cat >rabbitmq.conf <<-EOF
		listeners.tcp.1 = 127.0.0.1:$p
		log.console = true
		log.console.formatter = $form
		log.file = false
	EOF
	: >plugins
	export RABBITMQ_CONFIG_FILE=$shop/rabbitmq.conf RABBITMQ_MNESIA_BASE=$shop/mnesia-$form RABBITMQ_LOG_BASE=$shop \
		RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_DIST_PORT=$dist ERL_EPMD_PORT=$gone ERL_EPMD_ADDRESS=127.0.0.1 \
		RABBITMQ_ENABLED_PLUGINS_FILE=$shop/plugins RABBITMQ_PID_FILE=$shop/rabbit.pid
	echo '[].' >plugins
	TZ=Europe/Vienna serve "$p" /usr/lib/rabbitmq/bin/rabbitmq-server >"$log" 2>rabbit.stderr
	sleep 3
	mark
	(exec 4<>"/dev/tcp/127.0.0.1/$p" && printf 'hello\r\n\r\n' >&4 && timeout 2 cat <&4 >answer 2>&1) || true
	end "$(package RabbitMQ rabbitmq-server)"
	stop
	sleep 2
done
ERL_EPMD_PORT=$gone epmd -kill >epmd.out 2>&1 || true
