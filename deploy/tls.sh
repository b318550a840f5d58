#!/usr/bin/env bash
# Makes a certificate for an ingester, and an authority of your own that signs it, for
# where nobody else gives you certificates.
#
#   deploy/tls.sh FOLDER NAME...       NAME: a DNS name, also *.example.com, or an address
#
# FOLDER gets tls.crt and tls.key for the ingester, ca.crt for those who send and read,
# and ca.key, which belongs on no server. Called again, it makes a new certificate by the
# same authority: clients go on trusting it. The certificate is good for 397 days.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
folder=$1
shift

names=
for name in "$@"; do
	if [[ $name =~ ^[0-9.]+$ || $name == *:* ]]; then names+="IP:$name,"; else names+="DNS:$name,"; fi
done

# A container reads tls.key as another user than the one who makes it. So the file is for
# all, and the folder for its owner alone.
mkdir -p -m 0700 "$folder"
cd "$folder"
umask 077
if [ ! -e ca.key ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 3650 -sha256 \
		-subj "/CN=blobtail authority" -addext "keyUsage=critical,keyCertSign,cRLSign" -addext "basicConstraints=critical,CA:TRUE,pathlen:0" 2>/dev/null
fi
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key.new -out tls.csr -subj "/CN=blobtail ingester" 2>/dev/null
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -set_serial "0x$(openssl rand -hex 16)" -days 397 -sha256 -out tls.crt.new -extfile <(
	printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:FALSE\n' "${names%,}"
) 2>/dev/null
rm tls.csr
chmod 0644 tls.key.new tls.crt.new ca.crt
mv tls.key.new tls.key
mv tls.crt.new tls.crt
