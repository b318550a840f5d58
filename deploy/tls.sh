#!/bin/sh
# Makes a certificate for ingesters and logquery serve, and an authority of your own that signs
# it, for where nobody else gives you certificates.
#
#   deploy/tls.sh FOLDER NAME...       NAME: a DNS name, also *.example.com, or an address
#   deploy/tls.sh FOLDER               a new one with the names that the present one has
#
# FOLDER/ingest gets tls.crt and tls.key for the server, and ca.crt for senders and
# readers. FOLDER/authority gets the key of the authority, which belongs on no server.
# localhost, 127.0.0.1 and ::1 are always among the names, for kubectl port-forward and for
# tunnels. Called again, it makes a new certificate by the same authority: clients go on
# trusting it, and servers take the new one by themselves. The new one has the names of the
# new call alone; names that it drops are printed. It is good for 397 days.
set -eu

fail() {
	echo "tls.sh: $*" >&2
	exit 2
}

# names_of CERTIFICATE prints its names, one a line.
names_of() {
	openssl x509 -in "$1" -noout -text | sed -n '/Subject Alternative Name/{n;p;}' | tr ',' '\n' |
		sed 's/^ *//; s/ *$//; s/^DNS://; s/^IP Address://; s/^0:0:0:0:0:0:0:1$/::1/'
}

# until_of CERTIFICATE prints its end.
until_of() { openssl x509 -in "$1" -noout -enddate | sed 's/^notAfter=//'; }

# on_one_line joins lines by commas.
on_one_line() { tr '\n' ',' | sed 's/,$//; s/,/, /g'; }

# run COMMAND shows what a command said only if it fails.
run() { "$@" 2>openssl.log || { cat openssl.log >&2; fail "openssl failed"; }; }

command -v openssl >/dev/null 2>&1 || fail "openssl is not installed"
[ $# -ge 1 ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
folder=$1
shift
case $folder in
-* | *://*) fail "\"$folder\" is no folder: the first word is one, and names come behind it" ;;
esac
if [ $# -eq 0 ]; then
	[ -e "$folder/ingest/tls.crt" ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
	set -f
	# shellcheck disable=SC2046 # one word for each name
	set -- $(names_of "$folder/ingest/tls.crt")
fi

alternatives=
for name in "$@" localhost 127.0.0.1 ::1; do
	case $name in
	'' | -* | *[!A-Za-z0-9.:*_-]*) fail "\"$name\" is no name: want a DNS name or an address, without a scheme and a path" ;;
	*:*:*) kind=IP ;;
	*:*) fail "\"$name\" has a port: leave it out" ;;
	*[!0-9.]*) kind=DNS ;;
	*)
		kind=IP
		echo "$name" | grep -Eq '^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])$' ||
			fail "\"$name\" is no address: want four numbers from 0 to 255, such as 10.0.0.5"
		;;
	esac
	case ,$alternatives in *",$kind:$name,"*) ;; *) alternatives=$alternatives$kind:$name, ;; esac
done

# A container reads FOLDER/ingest as another user, so its files are for all users. FOLDER is
# for its owner alone.
mkdir -p -m 0700 "$folder"
cd "$folder"
mkdir -p -m 0755 ingest
mkdir -p -m 0700 authority
umask 077
cd authority
if [ ! -e ca.key ]; then
	run openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ../ingest/ca.crt -days 3650 -sha256 \
		-subj "/CN=blobtail authority" -addext "keyUsage=critical,keyCertSign,cRLSign" -addext "basicConstraints=critical,CA:TRUE,pathlen:0"
fi
openssl x509 -in ../ingest/ca.crt -noout -checkend 0 >/dev/null 2>&1 ||
	fail "$folder/ingest/ca.crt is missing or has ended: move $folder away to make a new authority, and give its ca.crt to all clients"
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:FALSE\n' "${alternatives%,}" >tls.cnf
run openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -out tls.csr -subj "/CN=blobtail"
run openssl x509 -req -in tls.csr -CA ../ingest/ca.crt -CAkey ca.key -set_serial "0x$(openssl rand -hex 16)" -days 397 -sha256 -out tls.crt -extfile tls.cnf
names_of tls.crt >names
dropped=
if [ -e ../ingest/tls.crt ]; then
	dropped=$(names_of ../ingest/tls.crt | grep -Fxv -f names | on_one_line) || true
fi
echo "$folder/ingest/tls.crt: for $(on_one_line <names), until $(until_of tls.crt)"
echo "$folder/ingest/ca.crt: its authority, for clients (--ca, --cacert), until $(until_of ../ingest/ca.crt)"
[ -z "$dropped" ] || echo "dropped, because this call does not name them: $dropped"
rm tls.csr tls.cnf names openssl.log
chmod 0644 tls.key tls.crt ../ingest/ca.crt
mv tls.key tls.crt ../ingest/
