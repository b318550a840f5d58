# What programs tell syslog and the journal. Packages of Debian: rsyslog cron openssh-server
# openssh-client sudo systemd bsdutils
if [ -e /dev/log ]; then
	echo "/dev/log is there: stop the syslog of this machine" >&2
	exit 1
fi
mount -t tmpfs none /run # behind all other parts: their servers may need what is there
mkdir -p /run/sshd /run/sudo /run/systemd/journal

# log_to TEMPLATE: rsyslogd writes to $log by one of its templates.
log_to() {
	rm -f /dev/log
	cat >rsyslog.conf <<-EOF
		global(workDirectory="$shop" localHostname="web1")
		module(load="imuxsock" SysSock.Name="/dev/log")
		*.* action(type="omfile" file="$log" template="$1" asyncWriting="off")
	EOF
	rsyslogd -n -f "$shop/rsyslog.conf" -i "$shop/rsyslog.pid" 2>rsyslog.stderr &
	pids+=($!)
	for _ in $(seq 50); do
		[ ! -S /dev/log ] || return 0
		sleep 0.1
	done
}
rsyslog=$(package rsyslog rsyslog)
shop_logs() {
	logger -t shop -p user.info 'order 1001 placed'
	logger -t shop -i -p user.warning 'article 4711 is nearly sold out'
	logger -t shop -p user.err 'card of order 1001 declined'
}

begin server-rsyslog-traditional
log_to RSYSLOG_TraditionalFileFormat
shop_logs
end "$rsyslog"
stop
begin server-rsyslog-file
TZ=Europe/Vienna log_to RSYSLOG_FileFormat
shop_logs
end "$rsyslog"
stop
begin server-rsyslog-rfc5424
TZ=Europe/Vienna log_to RSYSLOG_SyslogProtocol23Format
mark
shop_logs
end "$rsyslog"
stop

begin server-sshd
log_to RSYSLOG_TraditionalFileFormat
p=$(port)
ssh-keygen -q -t ed25519 -N '' -f host.key
printf 'Port %s\nListenAddress 127.0.0.1\nHostKey %s\nPidFile none\nUsePAM no\n' "$p" "$shop/host.key" >sshd.conf
serve "$p" /usr/sbin/sshd -D -f "$shop/sshd.conf"
mark
ssh -p "$p" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known clerk@127.0.0.1 true 2>answer || true
ssh -p "$p" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known -c 3des-cbc clerk@127.0.0.1 true 2>answer || true
end "$(package OpenSSH openssh-server)"
stop
stop

begin server-sudo
log_to RSYSLOG_TraditionalFileFormat
mark
grep -v pam_limits /etc/pam.d/sudo >pam-sudo
printf 'Defaults !mail_badpass, !mail_no_user, !mailerpath\nroot ALL=(ALL:ALL) ALL\nDefaults:nobody !authenticate\nnobody ALL=/usr/bin/date\n' >sudoers
chmod 440 sudoers
echo '127.0.0.1 localhost web1' >hosts
mount --bind pam-sudo /etc/pam.d/sudo
mount --bind sudoers /etc/sudoers
mount --bind hosts /etc/hosts
sudo -u nobody -n -- /usr/bin/true 2>answer || true
setpriv --reuid nobody --regid nogroup --clear-groups sudo -n -- /usr/bin/cat /etc/shadow 2>answer || true
end "$(package sudo sudo)"
stop

begin server-cron
log_to RSYSLOG_TraditionalFileFormat
mkdir -p spool/crontabs empty
: >crontab
grep -v pam_limits /etc/pam.d/cron >pam-cron
mount --bind spool /var/spool/cron
mount --bind empty /etc/cron.d
mount --bind crontab /etc/crontab
mount --bind pam-cron /etc/pam.d/cron
printf '* * * * * echo placed >/dev/null\n' >spool/crontabs/nobody
printf '* * * * nonsense\n' >spool/crontabs/www-data
chown nobody:crontab spool/crontabs/nobody
chown www-data:crontab spool/crontabs/www-data
chmod 600 spool/crontabs/*
cron -f &
pids+=($!)
sleep 1
last 3
sleep $((62 - 10#$(date +%S)))
end "$(package cron cron)"
stop
stop
umount /etc/pam.d/sudo /etc/sudoers /etc/hosts
umount /var/spool/cron /etc/cron.d /etc/crontab /etc/pam.d/cron
rm -f /dev/log

# The journal, of a machine with an id of its own.
begin journal
echo 0123456789abcdef0123456789abcdef >machine-id
mount --bind machine-id /etc/machine-id
mount -t tmpfs none /var/log
mkdir -p /run/log/journal
/lib/systemd/systemd-journald 2>journald.stderr &
pids+=($!)
sleep 2
tell() { logger --journald; }
printf 'MESSAGE=order 1001 placed\nPRIORITY=6\nSYSLOG_IDENTIFIER=shop\n' | tell
printf 'MESSAGE=article 4711 is nearly sold out\nPRIORITY=4\nSYSLOG_IDENTIFIER=shop\nARTICLE=4711\n' | tell
printf 'MESSAGE=order 1002 could not be charged:\nMESSAGE=negative amount: -5\nPRIORITY=3\nSYSLOG_IDENTIFIER=shop\n' | tell
fields=--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,ARTICLE,_HOSTNAME,_PID,_UID,_COMM,_TRANSPORT
sleep 1
begun=$from
for form in short short-iso json export; do
	begin "platform-journalctl-$form"
	from=$begun
	if [ "$form" = short-iso ]; then zone=Europe/Vienna; else zone=UTC; fi
	TZ=$zone journalctl -q --no-pager "$fields" -o "$form" -t shop >"$log"
	end "$(systemctl --version | sed -n '1s/ (.*//p')"
done
printf 'MESSAGE=\033[31mcard of order 1001 declined\033[0m\nPRIORITY=3\nSYSLOG_IDENTIFIER=till\n' | tell
sleep 1
begin platform-journalctl-json-bytes
from=$begun
journalctl -q --no-pager "$fields" -o json -t till >"$log"
end "$(systemctl --version | sed -n '1s/ (.*//p')"
stop
rm -f /dev/log
