package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
)

// needNamespaces skips the test where it cannot have a file system of its own.
func needNamespaces(t *testing.T) {
	t.Helper()
	need(t, "bash", "curl", "openssl", "unshare", "setpriv", "runuser", "systemd-sysusers", "systemd-tmpfiles", "systemd-analyze")
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of the user of the units")
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("this host gives a process no file system of its own: %v: %s", err, out)
	}
}

// ownRoot gives a script directories of its own in place of those that the page installs to. $1 is
// a folder for them.
const ownRoot = `set -euo pipefail
trap 'echo "it fails: $BASH_COMMAND" >&2; for log in "$STAND_IN"/*.log; do tail -n 5 "$log" >&2; done' ERR
mount --make-rprivate /
cp -a /etc "$1/etc"
mount --bind "$1/etc" /etc
mount -t tmpfs -o mode=755 tmpfs /usr/local
mkdir -p /usr/local/bin
mount -t tmpfs -o mode=755 tmpfs /var/lib
rm -rf /etc/blobtail /etc/systemd/system
mkdir -p /etc/systemd/system
echo '127.0.0.1 localhost logs.example.com' >/etc/hosts
`

// between are commands before a block of the page, by a text in it: facts that its reader
// would have, and checks of promises that the page makes beside its commands.
var between = map[string]string{
	// The files have the owner and mode of the page's table. Each refusal has its fix.
	"ingest check --config": `
for file in tokens.yaml reader.token tls.key blobtail.yaml; do
	[ "$(stat -c '%U:%G %a' /etc/blobtail/$file)" = 'root:blobtail 640' ] || { stat /etc/blobtail/$file >&2; exit 1; }
done
chown root:root /etc/blobtail/tokens.yaml
chmod 600 /etc/blobtail/tokens.yaml
! runuser -u blobtail -- ingest check-config --config /etc/blobtail/blobtail.yaml 2>refused || exit 1
grep -q 'chgrp blobtail /etc/blobtail/tokens.yaml && chmod g+r /etc/blobtail/tokens.yaml' refused
systemd-tmpfiles --create blobtail.conf
`,
	// The unit limits its process, which is the user's.
	"the first record": `
status=/proc/$(cat "$STAND_IN/blobtail-ingest.service.pid")/status
for want in "Uid:	$(id -u blobtail)	$(id -u blobtail)" "CapBnd:	0000000000000000" "CapEff:	0000000000000000" "NoNewPrivs:	1" "Umask:	0077"; do
	grep -q "^$want" "$status" || { echo "$status has no $want" >&2; grep -E 'Uid|Cap|NoNew|Umask' "$status" >&2; exit 1; }
done
files=$(awk '/^Max open files/ { print $4 }' "${status%status}limits")
[ "$files" = 65536 ] || [ "$files" = "$(ulimit -H -n)" ]
`,
	// A mistake in the file fails the reload, and takes nothing away. A certificate of certbot comes by the hook.
	"ingest token new db": `
cp -p /etc/blobtail/tokens.yaml kept
echo '  - id: ""' >>/etc/blobtail/tokens.yaml
! systemctl reload blobtail-ingest 2>refused || exit 1
grep -q 'tokens.yaml: line' "$STAND_IN/blobtail-ingest.service.log"
cp kept /etc/blobtail/tokens.yaml
bash deploy/tls.sh secrets logs.example.com renewed.example.com >/dev/null
mkdir live
cp secrets/ingest/tls.crt live/fullchain.pem
cp secrets/ingest/tls.key live/privkey.pem
RENEWED_LINEAGE=$PWD/live /etc/letsencrypt/renewal-hooks/deploy/blobtail
for port in 8514 8516; do
	openssl s_client -connect 127.0.0.1:$port </dev/null 2>/dev/null | openssl x509 -noout -text | grep -q renewed.example.com
done
cat "$STAND_IN"/blobtail-{ingest,serve}.service.pid >pids
`,
	// The reload was no restart, and the revoked token is refused. Some days of records are past their age.
	"retention plan --config": `
cat "$STAND_IN"/blobtail-{ingest,serve}.service.pid | cmp - pids
curl -sS -o refused --cacert secrets/ingest/ca.crt -H "Authorization: Bearer $(cat db.token)" \
	-d 'too late' https://logs.example.com:8514/ingest/db
grep -q 'the token is not known' refused
for days in 60 61 62 63; do
	curl -sS -o sent --cacert secrets/ingest/ca.crt -H "Authorization: Bearer $(cat web.token)" https://logs.example.com:8514/ingest/web-old \
		-d "{\"time\":\"$(date -u -d "$days days ago" +%FT%TZ)\",\"msg\":\"old\"}"
done
curl -sS -o flushed -X POST http://127.0.0.1:8515/flush
mkdir -p /var/lib/prometheus/node-exporter
`,
	"blobtail-retention.timer blobtail-compact.timer\nsystemctl start": `
[ -e /var/lib/blobtail/store/_horizon/web-old ]
grep -q -e '--confirm' "$STAND_IN/blobtail-retention.service.log"
`,
	// The jobs are another user now, who may read the configuration, and no store of the ingester's user.
	"systemctl restart blobtail-serve": `
runuser -u blobtail-jobs -- ingest print-config --config /etc/blobtail/blobtail.yaml >printed
systemd-analyze verify --man=no /etc/systemd/system/blobtail-*.service /etc/systemd/system/blobtail-*.timer >verified 2>&1
! grep blobtail verified >&2 || exit 1
for job in retention compact; do
	! systemctl start blobtail-$job 2>refused || exit 1
	grep -q '/var/lib/blobtail belongs to user blobtail' "$STAND_IN/blobtail-$job.service.log"
done
userdel blobtail-jobs
`,
	"ingest token new peers": `
grep -q '^blobtail_retention' /var/lib/prometheus/node-exporter/blobtail_retention.prom
[ "$(stat -c '%U %a' /var/lib/prometheus/node-exporter/blobtail_retention.prom)" = 'root 644' ]
grep -q 'nothing to rewrite' "$STAND_IN/blobtail-compact.service.log"
`,
}

// TestSystemdPage runs the commands of docs/start/systemd.md as root, in directories of its own and
// with a stand-in for systemctl that runs the commands of the units as these say.
func TestSystemdPage(t *testing.T) {
	needNamespaces(t)
	const page, marked = "docs/start/systemd.md", "TestSystemdPage"
	run := slices.DeleteFunc(blocks(t, page), func(b block) bool { return !strings.Contains(b.skip, marked) })
	if len(run) < 12 {
		t.Fatalf("%s: found %d blocks to run", page, len(run))
	}
	folder, work := t.TempDir(), t.TempDir()
	for _, dir := range []string{"deploy", "docs"} {
		from, err := filepath.Abs(filepath.Join(root, dir))
		if err == nil {
			err = os.Symlink(from, filepath.Join(work, dir))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(build(t), filepath.Join(work, "bin")); err != nil {
		t.Fatal(err)
	}
	const mark = "@@ end of block"
	script, used := ownRoot+"export PATH=$2:/usr/local/bin:$PATH\n", 0
	for _, b := range run {
		for text, commands := range between {
			if strings.Contains(b.text, text) {
				script += commands
				used++
			}
		}
		script += fmt.Sprintf("echo '%s'\n%s", mark, b.text)
	}
	if used != len(between) {
		t.Errorf("%d of %d checks between the commands were made", used, len(between))
	}
	script += "[ ! -e /etc/blobtail ] && [ ! -e /var/lib/blobtail ] && ! id blobtail 2>/dev/null || exit 1\necho '" + mark + "'\n"
	ports := freePorts(t, 3)
	here := strings.NewReplacer("0.0.0.0:8514", "127.0.0.1:"+ports[0], "0.0.0.0:8516", "127.0.0.1:"+ports[2], "8514", ports[0], "8515", ports[1], "8516", ports[2])

	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	tools, err := filepath.Abs("testdata/systemd")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", here.Replace(script), "bash", folder, tools)
	cmd.Dir, cmd.Env = work, environment("TZ=UTC", "STAND_IN="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	printed := strings.Split(stdout.String(), mark+"\n")
	for i, b := range run {
		if i >= len(printed)-2 {
			t.Errorf("%s:%d: the commands failed here:\n%s%s", page, b.line, b.text, printed[len(printed)-1])
			break
		}
		if want := here.Replace(b.output); b.shown && !match(want, printed[i+1]) {
			t.Errorf("%s:%d: the block below says\n%s\nbut printed was\n%s", page, b.line, want, printed[i+1])
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}
