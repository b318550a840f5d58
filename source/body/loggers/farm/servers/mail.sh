# Mail. Packages of Debian: dovecot-core dovecot-imapd postfix
begin server-dovecot
p=$(port)
mkdir -p dovecot/run
cat >dovecot.conf <<-EOF
	protocols = imap
	base_dir = $shop/dovecot/run
	log_path = $log
	ssl = no
	disable_plaintext_auth = no
	mail_location = maildir:$shop/dovecot/%u
	passdb {
	  driver = passwd-file
	  args = $shop/dovecot/users
	}
	userdb {
	  driver = static
	  args = uid=dovecot gid=dovecot home=$shop/dovecot/%u
	}
	service imap-login {
	  inet_listener imap {
	    address = 127.0.0.1
	    port = $p
	  }
	  inet_listener imaps {
	    port = 0
	  }
	}
EOF
echo 'clerk:{PLAIN}none' >dovecot/users
chown -R dovecot: dovecot
chmod 755 . dovecot
serve "$p" dovecot -F -c dovecot.conf 2>dovecot.stderr
exec 4<>"/dev/tcp/127.0.0.1/$p"
printf 'a login clerk wrong\r\nb login clerk none\r\nc logout\r\n' >&4
cat <&4 >answer
exec 4>&-
end "$(package Dovecot dovecot-core)"
stop

begin server-postfix
p=$(port)
mkdir -p postfix/{etc,queue,data}
chown postfix postfix/data
cp /etc/postfix/master.cf postfix/etc/ 2>/dev/null || cp /usr/share/postfix/master.cf.dist postfix/etc/master.cf
sed -i "s/^smtp .*inet.*/127.0.0.1:$p inet n - n - - smtpd/; s/^\(pickup\|cleanup\|qmgr\|.*unix .*\) y /\1 n /" postfix/etc/master.cf
cp postfix/etc/master.cf postfix/etc/master.cf.new
awk '!/^#/ && NF >= 8 && $5 == "y" { $5 = "n" } { print }' postfix/etc/master.cf.new >postfix/etc/master.cf
rm postfix/etc/master.cf.new
grep -q ^postlog postfix/etc/master.cf || echo 'postlog unix-dgram n - n - 1 postlogd' >>postfix/etc/master.cf
cat >postfix/etc/main.cf <<-EOF
	compatibility_level = 3.6
	myhostname = mail.example.com
	mydestination = example.com
	mynetworks = 127.0.0.0/8
	inet_interfaces = 127.0.0.1
	queue_directory = $shop/postfix/queue
	data_directory = $shop/postfix/data
	maillog_file = $log
	maillog_file_prefixes = $shop
	local_recipient_maps =
	mailbox_transport = error:mailbox of the shop is full
EOF
mkdir -p postfix/queue/etc
postfix -c "$shop/postfix/etc" start-fg >postfix.out 2>&1 &
pids+=($!)
sleep 4
mark
exec 4<>"/dev/tcp/127.0.0.1/$p"
printf 'EHLO web1\r\nMAIL FROM:<>\r\nRCPT TO:<clerk@example.com>\r\nDATA\r\nSubject: order 1001\r\n\r\nplaced\r\n.\r\nQUIT\r\n' >&4
timeout 5 cat <&4 >answer || true
exec 4>&-
sleep 2
last 6
end "$(package Postfix postfix)"
postfix -c "$shop/postfix/etc" stop >postfix.out 2>&1 || true
stop
