#!/usr/bin/env bash
# Makes a certificate for an ingester, and an authority of your own that signs it, for
# where nobody else gives you certificates.
#
#   deploy/tls.sh FOLDER NAME...       NAME: a DNS name, also *.example.com, or an address
#
# FOLDER/ingest gets tls.crt and tls.key for the ingester, and ca.crt for senders and
# readers. FOLDER/authority gets the key of the authority, which belongs on no server.
# Called again, it makes a new certificate by the same authority: clients go on trusting
# it, and ingesters take the new one by themselves. It is good for 397 days.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
folder=$1
shift

names=
for name in "$@"; do
	if [[ $name =~ ^[0-9.]+$ || $name == *:* ]]; then names+="IP:$name,"; else names+="DNS:$name,"; fi
done

# A container reads FOLDER/ingest as another user, so its files are for all users. FOLDER is
# for its owner alone.
mkdir -p -m 0700 "$folder"
cd "$folder"
mkdir -p -m 0755 ingest
mkdir -p -m 0700 authority
umask 077
ca=authority/ca.key
if [ ! -e "$ca" ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$ca" -out ingest/ca.crt -days 3650 -sha256 \
		-subj "/CN=blobtail authority" -addext "keyUsage=critical,keyCertSign,cRLSign" -addext "basicConstraints=critical,CA:TRUE,pathlen:0" 2>/dev/null
fi
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority/tls.key -out authority/tls.csr -subj "/CN=blobtail ingester" 2>/dev/null
openssl x509 -req -in authority/tls.csr -CA ingest/ca.crt -CAkey "$ca" -set_serial "0x$(openssl rand -hex 16)" -days 397 -sha256 -out authority/tls.crt -extfile <(
	printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:FALSE\n' "${names%,}"
) 2>/dev/null
rm authority/tls.csr
chmod 0644 authority/tls.key authority/tls.crt ingest/ca.crt
mv authority/tls.key authority/tls.crt ingest/
