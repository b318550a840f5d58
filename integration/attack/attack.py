import atexit
import datetime
import os
import sys
import json
import re
import time
import socket
import subprocess
import threading
import random
import signal
import shutil
import base64
import zoneinfo
import struct
import bisect
from urllib.parse import quote, urlencode

BIN = os.environ["BIN"]
WORK = os.environ["WORKDIR"]
VERB = os.environ.get("VERBOSE")
random.seed(int(os.environ.get("SEED", "7")))
counts = {"right": 0, "refused": 0, "incomplete": 0, "WRONG": 0}
odd = []
wrongs = []
plock = threading.Lock()


def out(v, what, note=""):
    with plock:
        counts[v] += 1
        line = "%-10s %s  (%s)" % (v, what[:230], note[:420])
        print(line, flush=True)
        if v == "WRONG":
            wrongs.append(line)


def check(ok, what, note=""):
    out("right" if ok else "WRONG", what, note)


procs = []


def spawn(args, log, env=None, **kw):
    e = dict(os.environ)
    for k in list(e):
        if k.startswith("BLOBTAIL") or k.startswith("AZURE"):
            del e[k]
    if env:
        e.update(env)
    p = subprocess.Popen(["nice", "-n", "5"] + args, stdout=open(log + ".out", "ab"), stderr=open(log, "ab"), env=e, **kw)
    procs.append(p)
    return p


def waitlog(log, msg, t=20, skip=0):
    end = time.time() + t
    while time.time() < end:
        try:
            for i, l in enumerate(open(log, "rb").read()[skip:].decode("utf8", "replace").splitlines()):
                if '"message":"%s"' % msg in l:
                    return json.loads(l)
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    raise Exception("no %s in %s: %s" % (msg, log, open(log).read()[-800:]))


class Resp:
    pass


def http(addr, path, params=None, headers=None, method="GET", body=None, timeout=40, cut=None, raw=None):
    """one request on a connection of its own; parses chunks and trailers by itself"""
    if params is not None:
        q = params if isinstance(params, str) else urlencode(params, quote_via=quote)
        if q:
            path = path + "?" + q
    h = {"Host": addr, "Connection": "close"}
    if headers:
        h.update(headers)
    if body is not None:
        h["Content-Length"] = str(len(body))
    host, port = addr.split(":")
    r = Resp()
    r.status = 0
    r.body = b""
    r.trailers = {}
    r.headers = {}
    r.whole = False
    r.err = ""
    r.path = path
    t0 = time.time()
    try:
        s = socket.create_connection((host, int(port)), timeout=timeout)
        s.settimeout(timeout)
        ver = "HTTP/1.1"
        data = ("%s %s %s\r\n" % (method, path, ver) + "".join("%s: %s\r\n" % kv for kv in h.items()) + "\r\n").encode("latin1", "replace")
        if raw:
            data = raw
        s.sendall(data + (body or b""))
        f = s.makefile("rb", 1 << 16)
        line = f.readline()
        if not line:
            r.err = "no answer"
            return r
        r.status = int(line.split()[1])
        while True:
            l = f.readline()
            if l in (b"\r\n", b""):
                break
            k, v = l.decode("latin1").split(":", 1)
            r.headers[k.lower()] = v.strip()
        parts = []
        n = 0
        if r.headers.get("transfer-encoding") == "chunked":
            while True:
                if cut is not None and n >= cut:
                    s.close()
                    break
                if time.time() - t0 > timeout:
                    r.err = "timeout"
                    break
                l = f.readline()
                if not l:
                    r.err = "broken off"
                    break
                c = int(l.split(b";")[0], 16)
                if c == 0:
                    while True:
                        l = f.readline()
                        if l in (b"\r\n", b""):
                            break
                        k, v = l.decode("latin1").split(":", 1)
                        r.trailers[k.lower()] = v.strip()
                    r.whole = True
                    break
                d = f.read(c)
                parts.append(d)
                n += len(d)
                if len(d) < c:
                    r.err = "broken off"
                    break
                f.readline()
        elif method == "HEAD" or r.status in (204, 304):
            r.whole = True
        elif "content-length" in r.headers:
            c = int(r.headers["content-length"])
            d = f.read(c)
            parts.append(d)
            r.whole = len(d) == c
        else:
            parts.append(f.read())
            r.whole = True
        r.body = b"".join(parts)
        s.close()
    except Exception as e:
        r.err = repr(e)
    r.t = time.time() - t0
    return r


def js(r):
    try:
        return json.loads(r.body)
    except Exception:
        return None


class Ingester:
    def __init__(s, w, name, extra=(), env=None):
        s.w = w
        s.name = name
        s.log = os.path.join(w.dir, "ing-" + name + ".log")
        s.wal = os.path.join(w.dir, "wal-" + name)
        s.extra = list(extra)
        s.env = env
        s.p = None
        s.busy = threading.Lock()
        s.start()

    def start(s):
        if s.p and s.p.poll() is None:
            return
        skip = os.path.getsize(s.log) if os.path.exists(s.log) else 0
        s.p = spawn(
            [
                BIN + "/ingest",
                "--store",
                "dir:" + s.w.store,
                "--wal",
                s.wal,
                *"""
--listen 127.0.0.1:0 --admin 127.0.0.1:0 --flush-age 10m --flush-max-age 20m --grace 5s
""".split(),
            ]
            + s.extra,
            s.log,
            s.env,
        )
        m = waitlog(s.log, "ready", 30, skip)
        s.addr = m["listen"]
        s.admin = m["admin"]
        end = time.time() + 20
        while time.time() < end and http(s.admin, "/readyz").status != 200:
            time.sleep(0.1)

    def send(s, recs, headers=None, path="/ingest"):
        """sends records; those acknowledged go into the ledger"""
        h = {"Content-Type": "application/x-ndjson"}
        if headers:
            h.update(headers)
        for i in range(0, len(recs), 4000):
            part = recs[i : i + 4000]
            body = ("\n".join(json.dumps(r.wire()) for r in part) + "\n").encode()
            for tr in range(20):
                with s.busy:
                    r = http(s.addr, path, method="POST", body=body, headers=h, timeout=60)
                if r.status in (429, 503):
                    time.sleep(0.3)
                    continue
                break
            a = js(r)
            if r.status != 200 or a.get("rejected"):
                raise Exception("send: %s %s" % (r.status, r.body[:300]))
            now = time.time()
            for x in part:
                x.owner = s.name
                x.acked = now
            with s.w.lock:
                s.w.ledger.extend(part)

    def flush(s):
        r = http(s.admin, "/flush", method="POST", timeout=60)
        if r.status != 200:
            raise Exception("flush: %s %s" % (r.status, r.body[:300]))

    def kill9(s):
        with s.busy:
            os.kill(s.p.pid, 9)  # between requests: what is stored and not acknowledged would be in no ledger
        s.p.wait()

    def stop(s):
        os.kill(s.p.pid, signal.SIGSTOP)

    def cont(s):
        os.kill(s.p.pid, signal.SIGCONT)

    def term(s):
        os.kill(s.p.pid, 15)
        s.p.wait(20)


uidc = [0]


class Rec:
    __slots__ = ("ts", "level", "svc", "msg", "f", "uid", "owner", "acked")

    def __init__(s, ts, level, svc, msg=None, **f):
        uidc[0] += 1
        s.uid = uidc[0]
        s.ts = ts
        s.level = level
        s.svc = svc
        s.f = f
        s.owner = None
        s.acked = None
        s.msg = (
            msg if msg is not None else "evt u%dq %s" % (s.uid, random.choice(["GET /basket", "POST /order", "disk slow", "queue full"]))
        )

    def wire(s):
        d = {"time": rfc(s.ts), "service": s.svc, "msg": s.msg, "uid": s.uid}
        if s.level:
            d["level"] = s.level
        d.update(s.f)
        return d


def rfc(ns):
    s, n = divmod(ns, 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(s)) + ".%09dZ" % n


def unrfc(t):
    import calendar

    b, f = t[:-1].split(".") if "." in t else (t[:-1], "0")
    return calendar.timegm(time.strptime(b, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int((f + "0" * 9)[:9])


S = 10**9
MIN = 60 * S
H = 3600 * S
D = 24 * H


class World:
    def __init__(s, name):
        s.dir = os.path.join(WORK, name)
        os.makedirs(s.dir)
        s.store = os.path.join(s.dir, "store")
        s.ledger = []
        s.lock = threading.Lock()
        s.serves = []
        s.n = 0

    def serve(s, extra=(), env=None, tok=None):
        s.n += 1
        log = os.path.join(s.dir, "serve%d.log" % s.n)
        p = spawn([BIN + "/logquery", "serve", "--store", "dir:" + s.store, "--listen", "127.0.0.1:0"] + list(extra), log, env)
        m = waitlog(log, "listening")
        q = Serve(s, p, m["url"].split("//")[1], log)
        q.headers = tok or {}
        s.serves.append(q)
        return q

    def snap(s, pred=None):
        with s.lock:
            l = list(s.ledger)
        return [r for r in l if pred is None or pred(r)]


class Serve:
    def __init__(s, w, p, addr, log):
        s.w = w
        s.p = p
        s.addr = addr
        s.log = log
        s.headers = {}

    def get(s, path, params=None, headers=None, **kw):
        h = dict(s.headers)
        h.update(headers or {})
        return http(s.addr, path, params, h, **kw)

    def rss(s):
        try:
            # nice execs the program, so the pid is its own
            for l in open("/proc/%d/status" % s.p.pid):
                if l.startswith("VmHWM"):
                    return int(l.split()[1]) // 1024
        except Exception:
            return -1

    def stop(s):
        if s.p.poll() is None:
            os.kill(s.p.pid, 15)
            try:
                s.p.wait(15)
            except Exception:
                os.kill(s.p.pid, 9)


LV = ["trace", "debug", "info", "warn", "error", "critical"]


def cleanup():
    for p in procs:
        if p.poll() is None:
            try:
                os.kill(p.pid, 18)
                os.kill(p.pid, 9)
                p.wait(5)
            except Exception:
                pass


# ---------- websockets
class WS:
    def __init__(s, addr, path, headers=None, timeout=10):
        host, port = addr.split(":")
        s.s = socket.create_connection((host, int(port)), timeout=timeout)
        s.s.settimeout(timeout)
        h = {
            "Host": addr,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
        }
        h.update(headers or {})
        s.s.sendall(("GET %s HTTP/1.1\r\n" % path + "".join("%s: %s\r\n" % kv for kv in h.items()) + "\r\n").encode())
        s.buf = b""
        s.status = 0
        while b"\r\n\r\n" not in s.buf:
            d = s.s.recv(65536)
            if not d:
                break
            s.buf += d
        s.h, _, s.buf = s.buf.partition(b"\r\n\r\n")
        s.status = int(s.h.split()[1])

    def need(s, n, end):
        while len(s.buf) < n:
            s.s.settimeout(max(0.01, end - time.time()))
            d = s.s.recv(65536)
            if not d:
                return False
            s.buf += d
        return True

    def recv(s, timeout=5):
        end = time.time() + timeout
        if not s.need(2, end):
            return None
        n = s.buf[1] & 127
        k = 2
        if n == 126:
            if not s.need(4, end):
                return None
            n = struct.unpack(">H", s.buf[2:4])[0]
            k = 4
        elif n == 127:
            if not s.need(10, end):
                return None
            n = struct.unpack(">Q", s.buf[2:10])[0]
            k = 10
        if not s.need(k + n, end):
            return None
        op = s.buf[0] & 15
        d = s.buf[k : k + n]
        s.buf = s.buf[k + n :]
        return op, d

    def close(s):
        try:
            s.s.close()
        except Exception:
            pass


COPIES = False


def glob(svc, pat):
    import fnmatch

    if svc.startswith("_") and not pat.startswith("_"):
        return False
    return fnmatch.fnmatchcase(svc, pat)


def inwin(r, a, b):
    return (a is None or r.ts >= a) and (b is None or r.ts < b)


def sel(w, svcs, a, b, pred=None):
    with w.lock:
        l = list(w.ledger)
    return [r for r in l if (any(glob(r.svc, p) for p in svcs)) and inwin(r, a, b) and (pred is None or pred(r))]


LVN = {"": "other"}


def lvl(r):
    return r.level if r.level in LV else "other"


def P(svcs, a, b, extra=()):
    p = [("service", s) for s in svcs]
    if a is not None:
        p.append(("from", rfc(a)))
    if b is not None:
        p.append(("to", rfc(b)))
    return p + list(extra)


def diff(got, exp):
    from collections import Counter

    g, e = Counter(got), Counter(exp)
    m = e - g
    x = g - e
    return "expected %d, got %d, missing %d %s, unknown or twice %d %s" % (
        len(exp),
        len(got),
        sum(m.values()),
        list(m)[:4],
        sum(x.values()),
        list(x)[:4],
    )


def fail(r, what, whole, wantrefused=False):
    """verdict of an answer that is none; None if it is an answer"""
    if r.status == 0 or (r.err and "timeout" in r.err):
        out("WRONG", what, "no answer: %s after %.1fs" % (r.err, getattr(r, "t", 0)))
        return True
    if r.status >= 400:
        b = r.body[:200].decode("utf8", "replace").strip()
        if r.status == 500 and "loki" not in r.path:
            out("WRONG", what, "500: " + b)
            return True
        if r.status == 500 and not re.search("missing|incomplete|partial|could not|lack|damag", b):
            out("WRONG", what, "500 without a reason: " + b)
            return True
        if not b:
            out("WRONG", what, "%d without a reason" % r.status)
            return True
        if r.status == 404 and not wantrefused:
            out("WRONG", what, "404 for what exists: " + b)
            return True
        v = "incomplete" if (r.status == 500) else "refused"
        n = ""
        if whole and not wantrefused:
            n = "!! an answer was expected; "
            odd.append("%s: %d %s" % (what, r.status, b))
        out(v, what, n + "%d %s" % (r.status, b))
        return True
    return False


def settle(what, complete, ok, note, whole, reasons=""):
    if complete:
        check(ok, what, note)
    else:
        if whole:
            note = "!! needlessly incomplete: " + str(reasons)[:200] + "; " + note
            odd.append(what + " " + note)
        out("incomplete", what, note + " " + str(reasons)[:160])


def what(r):
    return r.path


def uids(rs):
    return [r.uid for r in rs]


def c_count(q, svcs, a, b, extra=(), pred=None, whole=True, params=None, hdr=None):
    exp = len(sel(q.w, svcs, a, b, pred))
    r = q.get("/api/v1/count", params or P(svcs, a, b, extra), headers=hdr)
    w = what(r)
    if r.status == 404 and exp == 0:
        out("refused", w, "404, nothing is there")
        return
    if fail(r, w, whole):
        return
    j = js(r)
    if j is None:
        out("WRONG", w, "no JSON")
        return
    exp2 = len(sel(q.w, svcs, a, b, pred))
    settle(w, j["complete"], exp <= j["records"] <= exp2, "expected %d, got %d" % (exp, j["records"]), whole, j["problems"])


def bucket_ns(by):
    return {"s": S, "m": MIN, "h": H, "d": D}[by[-1]] * int(by[:-1])


def c_hist(q, svcs, a, b, by="1m", split="level", extra=(), pred=None, whole=True):
    e = sel(q.w, svcs, a, b, pred)
    r = q.get("/api/v1/histogram", P(svcs, a, b, list(extra) + [("by", by), ("split", split)]))
    w = what(r)
    if r.status == 404 and not e:
        out("refused", w, "404, nothing is there")
        return
    if fail(r, w, whole):
        return
    j = js(r)
    n = bucket_ns(by)
    exp = {}
    for x in e:
        k = x.ts // n * n
        d = exp.setdefault(k, {})
        kk = lvl(x) if split == "level" else x.svc
        d[kk] = d.get(kk, 0) + 1
    got = {unrfc(k["t"]): k["counts"] for k in j["buckets"]}
    tot = sum(k["total"] for k in j["buckets"])
    ok = exp == got and tot == len(e)
    note = "expected %d in %d buckets, got %d in %d" % (len(e), len(exp), tot, len(got))
    if not ok:
        note += (
            "; first differences %s"
            % [(rfc(k), exp.get(k), got.get(k)) for k in sorted(set(exp) | set(got)) if exp.get(k) != got.get(k)][:2]
        )
    settle(w, j["complete"], ok, note, whole, j["problems"])


def parse_lines(r, form):
    got = []
    end = None
    prob = []
    for l in r.body.decode("utf8").split("\n"):
        if not l:
            continue
        try:
            o = json.loads(l)
        except Exception:
            continue
        if form == "events":
            if "record" in o:
                got.append(o["record"]["line"])
            elif "end" in o:
                end = o["end"]
            elif "problem" in o:
                prob.append(o["problem"])
        else:
            got.append(o)
    return got, end, prob


def c_rec(q, svcs, a, b, extra=(), pred=None, whole=True, form="lines", limit=None, first=None, order=None, hdr=None, logql=None):
    e = sorted(sel(q.w, svcs, a, b, pred), key=lambda r: r.ts)
    n = len(e)
    p = P(svcs, a, b, extra) if not logql else P([], a, b, [("logql", logql)])
    if form != "lines":
        p.append(("form", form))
    if limit is not None:
        p.append(("limit", limit))
    if first is not None:
        p.append(("first", first))
    if order:
        p.append(("order", order))
    if form == "csv":
        p.append(("fields", "uid,ts,service"))
    r = q.get("/api/v1/records", p, headers=hdr)
    w = what(r)
    if r.status == 404 and n == 0:
        out("refused", w, "404, nothing is there")
        return
    if fail(r, w, whole):
        return
    if form == "csv":
        ls = r.body.decode().splitlines()[1:]
        got = []
        for l in ls:
            c = l.split(",")
            if len(c) == 3 and c[0].isdigit():
                got.append({"uid": int(c[0]), "ts": c[1]})
        end = None
        prob = []
    else:
        got, end, prob = parse_lines(r, form)
    ts = [g["ts"] for g in got]
    k = first if first is not None else (1000 if limit is None else limit)
    if k == 0:
        k = n
    by = min(k, n)
    exp = e[:by] if first is not None else (e[n - by :])
    complete = r.whole and (end["complete"] if form == "events" and end else r.trailers.get("blobtail-complete") == "1")
    if form == "events" and r.whole and end is None:
        out("WRONG", w, "a stream of events that ends well without end")
        return
    more = end["more"] if form == "events" and end else r.trailers.get("blobtail-more") == "1"
    gu = [g.get("uid") for g in got]
    eu = uids(exp)
    ok = sorted(gu) == sorted(eu)
    if not ok and len(gu) == len(eu):
        # ties at the limit
        byuid = {x.uid: x for x in e}
        ok = len(set(gu)) == len(gu) and all(u in byuid for u in gu) and sorted(byuid[u].ts for u in gu) == sorted(x.ts for x in exp)
    note = diff(gu, eu)
    st = sorted(ts, reverse=(order == "desc"))
    if st != ts:
        ok = False
        note += " NOT IN ORDER"
    if complete and n > by and not more:
        ok = False
        note += " more is not said"
    if complete and end and end["records"] != len(got):
        ok = False
        note += " end says %d records" % end["records"]
    settle(w, complete, ok, note, whole, r.trailers.get("blobtail-problems") or prob or (end and end["problems"]) or r.err)


def c_facets(q, svcs, a, b, whole=True, extra=(), pred=None, fields="level,service,status"):
    e = sel(q.w, svcs, a, b, pred)
    r = q.get("/api/v1/facets", P(svcs, a, b, list(extra) + [("fields", fields), ("sample", 0), ("top", 1000)]))
    w = what(r)
    if r.status == 404 and not e:
        out("refused", w, "404, nothing is there")
        return
    if fail(r, w, whole):
        return
    j = js(r)
    exp = {"level": {}, "service": {}, "status": {}}
    for x in e:
        for n, v in (("level", x.level), ("service", x.svc), ("status", x.f.get("status"))):
            if v is not None:
                exp[n][str(v)] = exp[n].get(str(v), 0) + 1
    got = {f["name"]: {v["value"]: v["count"] for v in f["values"]} for f in j["fields"]}
    bad = []
    for n in fields.split(","):
        g = dict(got.get(n, {}))
        x = dict(exp[n])
        if n == "level":
            o = sum(v for k, v in x.items() if k not in LV)
            x = {k: v for k, v in x.items() if k in LV}
            go = sum(v for k, v in g.items() if k not in LV)
            g = {k: v for k, v in g.items() if k in LV}
            if o != go:
                bad.append(("other levels", o, go))
        if g != x:
            bad.append((n, {k: (x.get(k), g.get(k)) for k in set(x) | set(g) if x.get(k) != g.get(k)}))
    if j["basis"]["records"] != len(e):
        bad.append(("basis", len(e), j["basis"]))
    settle(
        w,
        j["complete"],
        not bad,
        "of %d records%s" % (len(e), " differs (expected, got): " + str(bad)[:300] if bad else ""),
        whole,
        j["problems"],
    )


def c_services(q, a=None, b=None, whole=True, svcs=("*", "_*"), hdr=None):
    e = sel(q.w, svcs, a, b)
    r = q.get("/api/v1/services", P([], a, b), headers=hdr)
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    exp = {}
    for x in e:
        exp.setdefault(x.svc, []).append(x)
    bad = []
    est = 0
    for s in j["services"]:
        x = exp.pop(s["name"], [])
        if s["name"].startswith("_"):
            continue
        if s.get("estimated"):
            est += 1
            continue
        if s["name"] in ("dup", "twice") and not COPIES:
            continue
        n = s["records"] + s["unflushed"]
        if n != len(x):
            bad.append((s["name"], len(x), n))
            continue
        lv = {}
        for y in x:
            lv[lvl(y)] = lv.get(lvl(y), 0) + 1
        if lv != s["levels"]:
            bad.append((s["name"], lv, s["levels"]))
        if a is None and b is None and x and (unrfc(s["first"]) != min(y.ts for y in x) or unrfc(s["last"]) != max(y.ts for y in x)):
            bad.append((s["name"], "first/last", rfc(min(y.ts for y in x)), s["first"], rfc(max(y.ts for y in x)), s["last"]))
    for k in exp:
        if not k.startswith("_"):
            bad.append((k, "missing", len(exp[k])))
    settle(
        w,
        j["complete"],
        not bad,
        "%d services, %d estimated%s" % (len(j["services"]), est, ", differ (name, expected, got): " + str(bad)[:300] if bad else ""),
        whole,
        j["problems"],
    )


def c_days(q, svcs, a=None, b=None, whole=True):
    e = sel(q.w, svcs, a, b)
    r = q.get("/api/v1/days", P(svcs, a, b))
    w = what(r)
    if r.status == 404 and not e:
        out("refused", w, "404, nothing is there")
        return
    if fail(r, w, whole):
        return
    j = js(r)
    exp = {}
    for x in e:
        k = (x.svc, rfc(x.ts)[:10])
        exp[k] = exp.get(k, 0) + 1
    got = {(d["service"], d["day"]): d["records"] + d["unflushed"] for d in j["days"]}
    if not COPIES:
        for d in (exp, got):
            for k in list(d):
                if k[0] in ("dup", "twice"):
                    del d[k]
    if a is None and b is None:
        bad = {k: (exp.get(k), got.get(k)) for k in set(exp) | set(got) if exp.get(k) != got.get(k)}
    else:
        bad = {k: (exp.get(k), got.get(k)) for k in exp if k not in got}
    settle(w, j["complete"], not bad, "%d days%s" % (len(got), ", differ: " + str(bad)[:300] if bad else ""), whole, j["problems"])


def c_blobs(q, svcs, a=None, b=None, whole=True, fetch=2):
    """all blobs together have the flushed records"""
    r = q.get("/api/v1/blobs", P(svcs, a, b))
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    e = sel(q.w, svcs, a, b)
    n = sum(x["records"] for x in j["blobs"]) + j["unflushed"]
    ok = n >= len(e) if (a or b or not COPIES) else n == len(e)
    settle(w, j["complete"], ok, "%d blobs with unflushed %d records, expected %d" % (len(j["blobs"]), n, len(e)), whole, j["problems"])
    for bl in random.sample(j["blobs"], min(fetch, len(j["blobs"]))):
        r = q.get("/api/v1/blobs/" + bl["name"])
        if fail(r, r.path, whole):
            continue
        g = [json.loads(l)["uid"] for l in r.body.decode().splitlines() if l]
        known = {x.uid for x in sel(q.w, [bl["service"]], None, None)}
        c = r.whole and (r.trailers.get("blobtail-complete") or r.headers.get("blobtail-complete")) == "1"
        settle(r.path, c, len(g) == bl["records"] and set(g) <= known, "%d lines, listed %d" % (len(g), bl["records"]), whole, r.err)


GRAF = {"User-Agent": "Grafana/11.2.0"}


def lq(svcs, lvls=None, rest=""):
    if list(svcs) == ["*"]:
        m = ""
    elif len(svcs) == 1 and "*" not in svcs[0]:
        m = 'service_name="%s"' % svcs[0]
    else:
        m = 'service_name=~"%s"' % "|".join(re.escape(s).replace("\\*", ".*").replace("\\", "\\\\") for s in svcs)
    if lvls:
        m += ("," if m else "") + lvls
    return "{%s}%s" % (m, " " + rest if rest else "")


def c_loki(q, svcs, a, b, lvls=None, rest="", pred=None, limit=100, direction=None, whole=True, json_=False, grafana=False, fmt=False):
    e = sorted(sel(q.w, svcs, a, b, pred), key=lambda r: r.ts)
    n = len(e)
    p = [("query", lq(svcs, lvls, rest)), ("start", a), ("end", b), ("limit", limit)]
    if direction:
        p.append(("direction", direction))
    r = q.get(("/json" if json_ else "") + "/loki/api/v1/query_range", p, headers=GRAF if grafana else None)
    w = what(r) + (" (Grafana)" if grafana else "")
    if fail(r, w, whole):
        return
    j = js(r)
    if j is None or not r.whole:
        out("WRONG" if r.whole else "incomplete", w, "no JSON " + r.err)
        return
    got = []
    for st in j["data"]["result"]:
        for v in st["values"]:
            if json_:
                u = json.loads(v[1])["uid"]
            else:
                u = int(st["stream"].get("uid") or re.search(r"u(\d+)q", v[1]).group(1))
            got.append((int(v[0]), u))
    k = min(limit, n)
    exp = e[:k] if direction == "forward" else e[n - k :]
    gu = [u for _, u in got]
    eu = uids(exp)
    ok = sorted(gu) == sorted(eu)
    if not ok and len(gu) == len(eu):
        byuid = {x.uid: x for x in e}
        ok = len(set(gu)) == len(gu) and all(u in byuid for u in gu) and sorted(byuid[u].ts for u in gu) == sorted(x.ts for x in exp)
    ws = j.get("warnings") or (j["data"].get("warnings") if isinstance(j["data"], dict) else None)
    settle(w, not ws, ok, diff(gu, eu), whole, ws)


def c_metric(q, svcs, a, b, rng, step, by="level", lvls=None, rest="", pred=None, whole=True, grafana=False, fn="count_over_time"):
    rn = bucket_ns(rng)
    sn = step * S
    p = [
        ("query", "sum%s (%s(%s[%s]))" % (" by (%s)" % by if by else "", fn, lq(svcs, lvls, rest), rng)),
        ("start", a),
        ("end", b),
        ("step", step),
    ]
    r = q.get("/loki/api/v1/query_range", p, headers=GRAF if grafana else None)
    w = what(r) + (" (Grafana)" if grafana else "")
    if fail(r, w, whole):
        return
    j = js(r)
    if j is None:
        out("WRONG", w, "no JSON")
        return
    t = a // sn * sn
    exp = {}
    e = sorted(sel(q.w, svcs, a - rn - sn, b + sn, pred), key=lambda r: r.ts)
    while t <= b:
        for x in e:
            if t - rn <= x.ts < t:
                k = {"level": lvl(x), "service_name": x.svc, "status": str(x.f.get("status", "")), "": ""}[by or ""]
                exp[(k, t)] = exp.get((k, t), 0) + 1
        t += sn
    got = {}
    for m in j["data"]["result"]:
        k = m["metric"].get(by, "") if by else ""
        if by == "level" and k not in LV:
            k = "other"
        for v in m["values"]:
            f = float(v[1])
            f = f * rn / S if fn == "rate" else f
            got[(k, round(float(v[0]) * S))] = got.get((k, round(float(v[0]) * S)), 0) + round(f, 6)
    got = {k: v for k, v in got.items() if v}
    bad = [(k[0], rfc(k[1]), exp.get(k), got.get(k)) for k in sorted(set(exp) | set(got)) if exp.get(k) != got.get(k)]
    settle(
        w,
        not j.get("warnings"),
        not bad,
        "%d points, sum %d%s"
        % (len(exp), sum(exp.values()), "; %d differ (label, t, expected, got): " % len(bad) + str(bad[:3]) if bad else ""),
        whole,
        j.get("warnings"),
    )


def c_instant(q, svcs, t, rng, by="level", lvls=None, rest="", pred=None, whole=True, grafana=False, fmt=None):
    rn = bucket_ns(rng)
    r = q.get(
        "/loki/api/v1/query",
        [("query", "sum%s (count_over_time(%s[%s]))" % (" by (%s)" % by if by else "", lq(svcs, lvls, rest), rng)), ("time", fmt or t)],
        headers=GRAF if grafana else None,
    )
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    exp = {}
    got = {}
    for x in sel(q.w, svcs, t - rn, t, pred):
        k = {"level": lvl(x), "service_name": x.svc, "status": str(x.f.get("status", "")), "": ""}[by or ""]
        exp[k] = exp.get(k, 0) + 1
    for m in j["data"]["result"]:
        k = m["metric"].get(by, "") if by else ""
        if by == "level" and k not in LV:
            k = "other"
        got[k] = got.get(k, 0) + float(m["value"][1])
    got = {k: v for k, v in got.items() if v}
    settle(w, not j.get("warnings"), exp == got, "expected %s, got %s" % (str(exp)[:150], str(got)[:150]), whole, j.get("warnings"))


def c_tail(q, svcs, n=None, frm=None, extra=(), pred=None, whole=True):
    p = [("service", s) for s in svcs] + list(extra) + [("once", 1)]
    if n is not None:
        p.append(("n", n))
    if frm is not None:
        p.append(("from", rfc(frm)))
    e = sorted(sel(q.w, svcs, frm, None, pred), key=lambda r: r.ts)
    r = q.get("/api/v1/tail", p)
    w = what(r)
    if r.status == 404 and not e:
        out("refused", w, "404, nothing is there")
        return
    if fail(r, w, whole):
        return
    got = []
    end = None
    pr = []
    for l in r.body.decode().splitlines():
        if l.startswith("data: "):
            o = json.loads(l[6:])
            if "record" in o:
                got.append(o["record"]["line"]["uid"])
            elif "end" in o:
                end = o["end"]
            elif "problem" in o or "gap" in o:
                pr.append(o)
    if frm is None:
        e = e[max(0, len(e) - (100 if n is None else n)) :] if n != 0 else []
    eu = uids(e)
    complete = bool(r.whole and end and end["complete"] and not pr)
    if end and end["complete"] and pr:
        odd.append("%s: end says complete and there were %s" % (w, str(pr)[:200]))
    ok = sorted(got) == sorted(eu)
    if not ok and len(got) == len(eu) and frm is None:
        byuid = {x.uid: x for x in sel(q.w, svcs, frm, None, pred)}
        ok = len(set(got)) == len(got) and all(u in byuid for u in got) and sorted(byuid[u].ts for u in got) == sorted(x.ts for x in e)
    settle(w, complete, ok, diff(got, eu), whole, pr or (end and end["problems"]) or r.err)


def c_values(q, label, a, b, exp, whole=True, hdr=None, path="/loki/api/v1/label/%s/values"):
    r = q.get(path % label, [("start", a), ("end", b)], headers=hdr)
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    d = set(j.get("data") or j.get("values") or [])
    settle(
        w,
        not j.get("warnings"),
        set(exp) <= d,
        "%d values, missing %s, more %s" % (len(d), sorted(set(exp) - d)[:4], sorted(d - set(exp))[:4]),
        whole,
        j.get("warnings"),
    )


def c_series(q, svcs, a, b, whole=True, hdr=None):
    e = {x.svc for x in sel(q.w, svcs, a, b)}
    r = q.get("/loki/api/v1/series", [("match[]", lq(svcs)), ("start", a), ("end", b)], headers=hdr)
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    d = {x["service_name"] for x in j["data"]}
    settle(
        w, not j.get("warnings"), e <= d, "expected %d, got %d, missing %s" % (len(e), len(d), sorted(e - d)[:5]), whole, j.get("warnings")
    )


def c_vol(q, svcs, a, b, whole=True, hdr=None):
    e = {x.svc for x in sel(q.w, svcs, a, b)}
    r = q.get("/loki/api/v1/index/volume", [("query", lq(svcs)), ("start", a), ("end", b), ("limit", 5000)], headers=hdr)
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    d = {x["metric"].get("service_name") for x in j["data"]["result"]}
    settle(
        w,
        not j.get("warnings"),
        e <= d,
        "services expected %d, got %d, missing %s" % (len(e), len(d), sorted(e - d)[:5]),
        whole,
        j.get("warnings"),
    )
    r = q.get("/loki/api/v1/index/stats", [("query", lq(svcs)), ("start", a), ("end", b)], headers=hdr)
    w = what(r)
    if fail(r, w, whole):
        return
    j = js(r)
    n = len(sel(q.w, svcs, a, b))
    settle(
        w,
        not j.get("warnings"),
        (n == 0 or j["entries"] > 0),
        "entries about %d, got %d (an estimate)" % (n, j["entries"]),
        whole,
        j.get("warnings"),
    )


def ph_copies(w):
    """a request that two ingesters have taken is shown once"""
    global COPIES
    q = w.serve()
    A, B = w.ing["a"], w.ing["b"]
    rs = mk("twice", "now", 40)
    A.send(rs)
    http(
        B.addr,
        "/ingest",
        method="POST",
        body=("\n".join(json.dumps(x.wire()) for x in rs) + "\n").encode(),
        headers={"Content-Type": "application/x-ndjson"},
    )
    for step in ("unflushed at both", "in a blob and unflushed", "in two blobs"):
        print("# 40 records, " + step)
        c_count(q, ["twice"], None, None)
        c_hist(q, ["twice"], NOW - H, NOW + H, "1m")
        c_rec(q, ["twice"], None, None, limit=0)
        c_loki(q, ["twice"], NOW - H, NOW + H)
        c_metric(q, ["twice"], NOW - 10 * MIN, NOW + MIN, "5m", 60)
        c_facets(q, ["twice"], None, None)
        c_tail(q, ["twice"], n=100)
        for p in ("services", "days?service=twice"):
            j = js(q.get("/api/v1/" + p))
            s = [x for x in j.get("services", j.get("days")) if x.get("name", x.get("service")) == "twice"]
            n = sum(x["records"] + x["unflushed"] for x in s)
            settle(
                "/api/v1/%s (records that two ingesters have, %s)" % (p, step),
                j["complete"],
                40 <= n <= (80 if "blob" in step else 40),
                "expected 40, or up to 80 for the copies in blobs, got %d" % n,
                True,
                j["problems"],
            )
        (A if step[0] == "u" else B).flush()
    q.stop()


NOW = time.time_ns()
T0 = NOW // H * H
Y = T0 - D
MON = T0 - 30 * D
FUT = T0 + 5 * H


def when(kind):
    if kind == "now":
        return NOW - random.randrange(0, 8 * MIN)
    if kind == "yest":
        return Y + random.randrange(0, 2 * H)
    if kind == "month":
        return MON + random.randrange(0, 3 * H)
    if kind == "fut":
        return FUT + random.randrange(0, H)
    if kind == "edge":
        return random.choice([T0, Y, MON, FUT, T0 // D * D, T0 // D * D - D]) + random.choice([0, -1, 1, S, -S, MIN, -MIN, 999999999])


def mk(svc, kind, n, **f):
    return [
        Rec(when(kind), random.choice(LV + ["info", "info", ""]), svc, status=random.choice([200, 200, 404, 500, 502]), **f)
        for _ in range(n)
    ]


ODD = ["a.b", "0", "true", "null", "records", "web-1", "web_2", "z" * 63, "count", "99999999999999999999"]
MANY = ["m-%03d" % i for i in range(150)]


def build(w, big=24000):
    w.ing = {}
    for n in "abc":
        w.ing[n] = Ingester(w, n)
    A, B, C = w.ing["a"], w.ing["b"], w.ing["c"]
    # in blobs
    A.send(
        mk("web", "now", 400)
        + mk("web", "yest", 500)
        + mk("web", "month", 300)
        + mk("web", "fut", 60)
        + mk("web", "edge", 60)
        + mk("orders", "yest", 200)
        + mk("orders", "edge", 40)
    )
    A.send(
        [
            Rec(
                Y + i * (H // big) + random.randrange(1000),
                random.choice(LV),
                "big",
                status=random.choice([200, 500]),
                pad="%032x" % random.getrandbits(128),
            )
            for i in range(big)
        ]
    )
    B.send(
        mk("web", "now", 300)
        + mk("web", "yest", 300)
        + mk("orders", "now", 150)
        + [Rec(Y + random.randrange(H), random.choice(LV), "big", status=200) for _ in range(3000)]
    )
    for o in ODD:
        A.send(mk(o, "now", 5) + mk(o, "yest", 5))
    A.send([x for m in MANY[:100] for x in mk(m, random.choice(["now", "yest", "month"]), 2)])
    # the same request at two ingesters: shown once
    dup = mk("dup", "now", 120) + mk("dup", "edge", 20)
    A.send(dup)
    B2 = ("\n".join(json.dumps(r.wire()) for r in dup) + "\n").encode()
    http(B.addr, "/ingest", method="POST", body=B2, headers={"Content-Type": "application/x-ndjson"})
    A.flush()
    B.flush()
    http(C.addr, "/ingest", method="POST", body=B2, headers={"Content-Type": "application/x-ndjson"})
    # unflushed
    A.send(mk("web", "now", 150) + mk("dup", "now", 10))
    B.send(mk("web", "now", 120) + mk("orders", "now", 50) + mk("web", "edge", 20))
    C.send(mk("web", "now", 90) + mk("only-c", "now", 40) + mk("web", "fut", 10) + [x for m in MANY[100:] for x in mk(m, "now", 2)])
    C.send([Rec(NOW - random.randrange(0, 5 * MIN), random.choice(LV), "backlog", status=200) for _ in range(6000)])
    for ig in (A, B):
        ig.send(mk("web", "yest", 15) + mk("orders", "month", 7) + mk("late", "month", 9))
    # a rejected one
    http(A.addr, "/ingest/web", method="POST", body=b'{"msg":"cut o\n', headers={"Content-Type": "application/x-ndjson"})


FILT = [
    ("", [], None, "", None),
    ("lvl", [("level", "error,critical")], 'level=~"error|critical"', "", lambda r: r.level in ("error", "critical")),
    ("warn+", [("level", "warn+")], 'level=~"warn|error|critical"', "", lambda r: r.level in ("warn", "error", "critical")),
    ("text", [("text", "basket")], None, '|= "basket"', lambda r: "basket" in r.msg),
    ("not", [("text", "basket"), ("not", 1)], None, '!= "basket"', lambda r: "basket" not in r.msg),
    ("re", [("expr", "u[0-9]*7q")], None, '|~ "u[0-9]*7q"', lambda r: re.search("u[0-9]*7q", r.msg)),
    ("nre", [("expr", "u[0-9]*7q"), ("not", 1)], None, '!~ "u[0-9]*7q"', lambda r: not re.search("u[0-9]*7q", r.msg)),
    ("where", [("where", "status >= 500")], None, "| status >= 500", lambda r: r.f.get("status", 0) >= 500),
    (
        "both",
        [("where", 'status == 502 or level == "error"')],
        None,
        '| status = 502 or level = "error"',
        lambda r: r.f.get("status") == 502 or r.level == "error",
    ),
    ("words", [("words", "order")], None, '|~ "\\\\border\\\\b"', lambda r: re.search(r"\border\b", r.msg)),
    ("fold", [("text", "BASKET"), ("fold", 1)], None, '|~ "(?i)BASKET"', lambda r: "basket" in r.msg),
    ("lvl+text", [("level", "error"), ("text", "disk")], 'level="error"', '|= "disk"', lambda r: r.level == "error" and "disk" in r.msg),
    ("two", [("text", "GET"), ("text", "bask")], None, '|= "GET" |= "bask"', lambda r: "GET" in r.msg),
    ("neq", [("where", "status != 200")], None, "| status != 200", lambda r: r.f.get("status") != 200),
    ("lvl!=", [("level", "trace,debug,info,warn,other")], 'level!~"error|critical"', "", lambda r: r.level not in ("error", "critical")),
]
SVCS = [
    ["web"],
    ["web", "orders"],
    ["*"],
    ["big"],
    ["dup"],
    ["web", "only-c", "dup"],
    ["m-*"],
    ["late"],
    ["backlog"],
    ["w*"],
    ["a.b", "0", "true"],
]


def windows(w):
    ts = sorted({r.ts for r in w.ledger if r.svc in ("web", "orders", "late")})
    x, y = sorted(random.sample(ts, 2))
    return [
        (None, None),
        (T0 - H, T0 + H),
        (Y, Y + H),
        (MON - H, MON + 4 * H),
        (T0 // D * D - D, T0 // D * D),
        (x, y),
        (x, x + 1),
        (x + 1, x + 1),
        (Y, T0),
        (T0, None),
        (None, T0),
        (FUT - H, FUT + 2 * H),
        (x, y + 1),
        (T0 - 1, T0 + 1),
        (NOW - 3 * MIN, NOW - MIN),
        (Y + H // 3, Y + H // 3 + S),
    ]


def sweep(q, n, whole=True, seed=None, only=None):
    """n random requests over everything, each judged"""
    w = q.w
    rnd = random
    kinds = [
        *"""
count count hist hist rec rec rec loki loki loki metric metric instant facets services days blobs tail values
series vol
""".split()
    ]
    if only:
        kinds = only
    for i in range(n):
        if q.p.poll() is not None:
            out("WRONG", "serve", "the process has ended: %s" % open(q.log).read()[-300:])
            return
        k = kinds[i % len(kinds)]
        svcs = rnd.choice(SVCS)
        a, b = rnd.choice(windows(w))
        f, own, lv, rest, pred = rnd.choice(FILT)
        graf = rnd.random() < 0.5
        try:
            if k == "count":
                c_count(q, svcs, a, b, own, pred, whole)
            elif k == "hist":
                c_hist(
                    q,
                    svcs,
                    a,
                    b,
                    rnd.choice(["1m", "1h", "1d", "10m", "6h", "1s"] if b and a and b - a < 3 * H else ["1h", "1d", "10m"]),
                    rnd.choice(["level", "service"]),
                    own,
                    pred,
                    whole,
                )
            elif k == "rec":
                z = rnd.random()
                lim = (
                    dict(limit=rnd.choice([0, 1, 7, 300, 5000])) if z < 0.5 else dict(first=rnd.choice([0, 1, 13, 500])) if z < 0.8 else {}
                )
                c_rec(
                    q,
                    svcs,
                    a,
                    b,
                    own,
                    pred,
                    whole,
                    form=rnd.choice(["lines", "events", "csv"]),
                    order=rnd.choice([None, "asc", "desc"]),
                    **lim,
                )
            elif k == "loki":
                c_loki(
                    q,
                    svcs,
                    a or MON - D,
                    b or FUT + 3 * H,
                    lv,
                    rest,
                    pred,
                    limit=rnd.choice([1, 50, 1000, 5000]),
                    direction=rnd.choice([None, "forward", "backward"]),
                    whole=whole,
                    json_=False if f in ("not", "nre") else rnd.random() < 0.3,
                    grafana=graf,
                )
            elif k == "metric":
                rng, step = rnd.choice([("1m", 60), ("5m", 60), ("1m", 300), ("7m", 60), ("30s", 45)])
                z = rnd.choice([(NOW - 20 * MIN, NOW + MIN), (Y, Y + 40 * MIN), (T0 - 10 * MIN, T0 + 10 * MIN + 7 * S)])
                c_metric(q, svcs, z[0], z[1], rng, step, rnd.choice(["level", "service_name", "status", ""]), lv, rest, pred, whole, graf)
            elif k == "instant":
                c_instant(
                    q,
                    svcs,
                    rnd.choice([NOW + MIN, T0, T0 + 1, Y + H, Y + 17 * MIN + 13]),
                    rnd.choice(["5m", "1h", "2d", "90m"]),
                    rnd.choice(["level", "service_name", "status", ""]),
                    lv,
                    rest,
                    pred,
                    whole,
                    graf,
                )
            elif k == "facets":
                c_facets(q, svcs, a, b, whole, own, pred)
            elif k == "services":
                c_services(q, *rnd.choice([(None, None), (a, b)]), whole=whole)
            elif k == "days":
                c_days(q, svcs, *rnd.choice([(None, None), (a, b)]), whole=whole)
            elif k == "blobs":
                c_blobs(q, svcs, *rnd.choice([(None, None), (a, b)]), whole=whole, fetch=1)
            elif k == "tail":
                if rnd.random() < 0.5:
                    c_tail(q, svcs, n=rnd.choice([0, 1, 100, 3000]), extra=own, pred=pred, whole=whole)
                else:
                    c_tail(q, svcs, frm=rnd.choice([Y, T0, NOW - 4 * MIN]), extra=own, pred=pred, whole=whole)
            elif k == "values":
                c_values(
                    q,
                    "service_name",
                    a or MON - D,
                    b or FUT + 3 * H,
                    {r.svc for r in sel(w, ["*"], a or MON - D, b or FUT + 3 * H)},
                    whole,
                    GRAF if graf else None,
                )
            elif k == "series":
                c_series(q, svcs, a or MON - D, b or FUT + 3 * H, whole, GRAF if graf else None)
            elif k == "vol":
                c_vol(q, svcs, a or MON - D, b or FUT + 3 * H, whole, GRAF if graf else None)
        except Exception as e:
            import traceback

            out("WRONG", "harness " + k, repr(e) + traceback.format_exc()[-300:])


def nogaps(name, q, fn):
    try:
        fn()
    except Exception as e:
        import traceback

        out("WRONG", "harness " + name, repr(e) + traceback.format_exc()[-300:])


def ph_conc(w, q, secs=12, senders=3, readers=6, kill=None, tag=""):
    """records come in, while many clients ask: a complete answer has all that was acknowledged before, and nothing that was never sent"""
    stop = time.time() + secs
    sent = {r.uid: r for r in w.ledger}
    sl = threading.Lock()
    base = time.time_ns()

    def sender(ig, i):
        k = 0
        while time.time() < stop:
            k += 1
            rs = []
            for _ in range(random.choice([1, 5, 40])):
                svc = random.choice(["web", "orders", "c-new%d" % random.randrange(30), "conc-%d" % i])
                ts = random.choice(
                    [
                        time.time_ns(),
                        time.time_ns(),
                        time.time_ns() - random.randrange(5 * MIN),
                        Y + random.randrange(H),
                        time.time_ns() + random.randrange(2 * H),
                        MON + random.randrange(H),
                    ]
                )
                rs.append(Rec(ts, random.choice(LV), svc, status=random.choice([200, 502]), by=i))
            with sl:
                for r in rs:
                    sent[r.uid] = r
            try:
                ig.send(rs)
            except Exception:
                time.sleep(0.2)
                continue
            if k % 7 == 0 and random.random() < 0.6:
                try:
                    ig.flush()
                except Exception:
                    pass
            time.sleep(random.random() * 0.05)

    stats = {}

    def cmp(wh, complete, got, must, allowed, reasons="", extra=""):
        g = set(got)
        miss = [u for u in must if u not in g]
        unk = [u for u in got if u not in allowed]
        twice = len(got) - len(g)
        ok = not miss and not unk and not twice
        if ok and complete:
            with plock:
                stats[wh.split("?")[0]] = stats.get(wh.split("?")[0], 0) + 1
        note = "%sacknowledged before %d, got %d, missing %d %s, unknown %s, twice %d" % (
            extra,
            len(must),
            len(got),
            len(miss),
            [(u, sent[u].svc, rfc(sent[u].ts)) for u in miss[:3]],
            unk[:3],
            twice,
        )
        if complete or unk or twice:
            check(ok, wh, tag + note)
        else:
            out("incomplete", wh, tag + note + " " + str(reasons)[:120])

    def reader(i):
        k = 0
        while time.time() < stop:
            k += 1
            svcs = random.choice([["web"], ["*"], ["orders"], ["c-new*"], ["conc-1"], ["web", "orders"]])
            a, b = random.choice(
                [(T0 - H, None), (T0 - H, None), (None, None), (time.time_ns() - 6 * MIN, None), (Y, Y + H), (base - 3 * MIN, base + 3 * H)]
            )
            kind = random.choice(
                ["count", "hist", "rec", "newest", "loki", "metric", "tail", "values", "services", "services", "events", "facets", "days"]
            )
            before = sel(w, svcs, a, b)

            def allowed():
                with sl:
                    return {u for u, r in sent.items() if any(glob(r.svc, p) for p in svcs) and inwin(r, a, b)}

            if kind == "count" or kind == "hist" or kind == "facets":
                if kind == "count":
                    r = q.get("/api/v1/count", P(svcs, a, b))
                elif kind == "hist":
                    r = q.get("/api/v1/histogram", P(svcs, a, b, [("by", "1h")]))
                else:
                    r = q.get("/api/v1/facets", P(svcs, a, b, [("fields", "level,status"), ("sample", 10)]))
                if r.status == 404 and not before:
                    continue
                if fail(r, r.path, kill is None):
                    continue
                j = js(r)
                n = (
                    j["records"]
                    if kind == "count"
                    else sum(x["total"] for x in j["buckets"])
                    if kind == "hist"
                    else next((f["present"] for f in j["fields"] if f["name"] == "level"), 0)
                )
                if kind == "facets":
                    before = [x for x in before if x.level]
                up = len(allowed())
                ok = len(before) <= n <= up
                out(
                    ("right" if ok else "WRONG") if j["complete"] else "incomplete",
                    r.path,
                    tag + "between %d and %d, got %d %s" % (len(before), up, n, j["problems"][:1]),
                )
            elif kind in ("rec", "events"):
                r = q.get("/api/v1/records", P(svcs, a, b, [("limit", 0), ("form", "events" if kind == "events" else "lines")]))
                if r.status == 404 and not before:
                    continue
                if fail(r, r.path, kill is None):
                    continue
                g, end, pr = parse_lines(r, "events" if kind == "events" else "lines")
                c = r.whole and (end["complete"] if kind == "events" else True)
                cmp(r.path, c, [x["uid"] for x in g], uids(before), allowed(), pr)
            elif kind == "newest":
                n = random.choice([1, 5, 50])
                fst = random.random() < 0.4
                r = q.get("/api/v1/records", P(svcs, a, b, [("first" if fst else "limit", n)]))
                if r.status == 404 and not before:
                    continue
                if fail(r, r.path, kill is None):
                    continue
                g, end, pr = parse_lines(r, "lines")
                if len(g) >= n:
                    edge = (max if fst else min)(unrfc(x["ts"]) for x in g)
                    must = [x.uid for x in before if (x.ts < edge if fst else x.ts > edge)]
                else:
                    must = uids(before)
                cmp(r.path, r.whole, [x["uid"] for x in g], must, allowed(), extra="%s %d; " % ("first" if fst else "newest", n))
            elif kind == "loki":
                a2 = a or MON - D
                b2 = b or FUT + 3 * H
                graf = random.random() < 0.5
                n = random.choice([10, 5000])
                r = q.get(
                    "/loki/api/v1/query_range",
                    [("query", lq(svcs)), ("start", a2), ("end", b2), ("limit", n)],
                    headers=GRAF if graf else None,
                )
                before = [x for x in before if inwin(x, a2, b2)]
                if fail(r, r.path, kill is None):
                    continue
                j = js(r)
                g = [(int(v[0]), int(s["stream"]["uid"])) for s in j["data"]["result"] for v in s["values"]]
                must = uids(before) if len(g) < n else [x.uid for x in before if x.ts > min(t for t, _ in g)]
                cmp(r.path, not j.get("warnings"), [u for _, u in g], must, allowed(), j.get("warnings"))
            elif kind == "metric":
                t = (time.time_ns() // MIN + 1) * MIN
                before = sel(w, svcs, t - 10 * MIN, t)
                r = q.get("/loki/api/v1/query", [("query", "sum(count_over_time(%s[10m]))" % lq(svcs)), ("time", t)], headers=GRAF)
                if fail(r, r.path, kill is None):
                    continue
                j = js(r)
                n = sum(float(x["value"][1]) for x in j["data"]["result"])
                a, b = t - 10 * MIN, t
                up = len(allowed())
                out(
                    ("right" if len(before) <= n <= up else "WRONG") if not j.get("warnings") else "incomplete",
                    r.path,
                    tag + "between %d and %d, got %d" % (len(before), up, n),
                )
            elif kind == "tail":
                a = time.time_ns() - MIN
                b = None
                before = sel(w, svcs, a, None)
                r = q.get("/api/v1/tail", [("service", s) for s in svcs] + [("from", rfc(a)), ("once", 1)])
                if r.status == 404:
                    continue
                if fail(r, r.path, kill is None):
                    continue
                evs = [json.loads(l[6:]) for l in r.body.decode().splitlines() if l.startswith("data: ")]
                g = [e["record"]["line"]["uid"] for e in evs if "record" in e]
                end = [e for e in evs if "end" in e]
                pr = [e for e in evs if "problem" in e or "gap" in e]
                cmp(r.path, bool(end and end[0]["end"]["complete"] and not pr), g, uids(before), allowed(), pr)
            elif kind == "services":
                before = {}
                for x in w.snap():
                    before[x.svc] = before.get(x.svc, 0) + 1
                r = q.get("/api/v1/services")
                if fail(r, r.path, kill is None):
                    continue
                j = js(r)
                g = {s["name"]: s["records"] + s["unflushed"] for s in j["services"]}
                est = {s["name"]: s.get("estimated") for s in j["services"]}
                bad = [(k, v, g.get(k)) for k, v in before.items() if not k.startswith("_") and g.get(k, 0) < v]
                al = {}
                with sl:
                    for x in sent.values():
                        al[x.svc] = al.get(x.svc, 0) + 1
                more = [
                    (k, al.get(k, 0), v)
                    for k, v in g.items()
                    if not k.startswith("_") and k not in ("dup", "twice") and v > al.get(k, 0) and not est.get(k)
                ]
                out(
                    ("right" if not bad + more else "WRONG") if j["complete"] else "incomplete",
                    r.path,
                    tag
                    + "%d services; fewer than acknowledged (name, acknowledged, got): %s; more than were ever sent: %s"
                    % (len(g), bad[:3], more[:3]),
                )
            elif kind == "days":
                r = q.get("/api/v1/days", [("service", x) for x in svcs])
                if r.status == 404:
                    continue
                if fail(r, r.path, kill is None):
                    continue
                j = js(r)
                a = b = None
                up = len(allowed())
                n = sum(x["records"] + x["unflushed"] for x in j["days"] if x["service"] not in ("dup", "twice"))
                up += sum(x["unflushed"] for x in j["days"])
                lo_ = len([x for x in before if x.svc not in ("dup", "twice")])
                out(
                    ("right" if lo_ <= n <= up else "WRONG") if j["complete"] else "incomplete",
                    r.path,
                    tag + "between %d and %d, got %d" % (lo_, up, n),
                )
            elif kind == "values":
                cut = time.time() - 6
                e = {x.svc for x in w.snap() if x.acked < cut}
                r = q.get("/loki/api/v1/label/service_name/values", [("start", MON - D), ("end", FUT + 3 * H)], headers=GRAF)
                if fail(r, r.path, kill is None):
                    continue
                j = js(r)
                m = e - set(j["data"]) - {"_rejected"}
                out(
                    ("right" if not m else "WRONG") if not j.get("warnings") else "incomplete",
                    r.path,
                    tag + "%d values, missing %s" % (len(j["data"]), list(m)[:3]),
                )

    ig = [w.ing[x] for x in "abc"]
    th = [threading.Thread(target=sender, args=(ig[i % 3], i)) for i in range(senders)]

    def rd(i):
        try:
            reader(i)
        except Exception as e:
            import traceback

            out("WRONG", "harness conc", repr(e) + traceback.format_exc()[-400:])

    th += [threading.Thread(target=rd, args=(i,)) for i in range(readers)]
    for t in th:
        t.start()
    if kill:
        kill()
    for t in th:
        t.join()


def ph_floor(w, q, rounds=7):
    """a late record is acknowledged, and its ingester is killed at once: no range that has it may be complete without it"""
    B = w.ing["b"]
    for age in [9 * MIN, 14 * MIN + 55 * S, 17 * MIN, 40 * MIN, 59 * MIN + 58 * S, 61 * MIN, 3 * H, D, 2 * D + 5, 30 * D, 400 * D][:rounds]:
        B.flush()
        if random.random() < 0.3:
            time.sleep(1)
        r = Rec(time.time_ns() - age, "warn", "fl-%d" % (age // MIN))
        B.send([r])
        B.kill9()
        for a, b in [(r.ts, r.ts + 1), (r.ts - MIN, r.ts + MIN), (None, r.ts + S), (r.ts - D, r.ts + 1)]:
            c_count(q, ["fl-*"], a, b, whole=False)
        c_rec(q, ["*"], r.ts, r.ts + 1, whole=False)
        c_hist(q, ["*"], r.ts - S, r.ts + S, "1m", whole=False)
        c_loki(q, ["*"], r.ts - S, r.ts + S, whole=False, grafana=True)
        c_loki(q, ["*"], r.ts - S, r.ts + S, whole=False)
        c_metric(q, ["*"], r.ts // MIN * MIN - MIN, r.ts // MIN * MIN + 2 * MIN, "1m", 60, whole=False, grafana=True)
        c_tail(q, ["fl-*"], n=50, whole=False)
        c_facets(q, ["*"], r.ts, r.ts + 1, whole=False)
        c_services(q, whole=False)
        c_values(q, "service_name", r.ts - MIN, r.ts + MIN, {r.svc}, whole=False, hdr=GRAF)
        B.start()
        c_count(q, ["fl-*"], None, None, whole=False)


def sse(q, p, headers=None, secs=3, until=None):
    """reads a tail for some seconds; events, last id"""
    host, port = q.addr.split(":")
    s = socket.create_connection((host, int(port)), timeout=secs)
    h = {"Host": q.addr}
    h.update(q.headers)
    h.update(headers or {})
    s.sendall(
        (
            "GET /api/v1/tail?%s HTTP/1.1\r\n" % urlencode(p, quote_via=quote) + "".join("%s: %s\r\n" % k for k in h.items()) + "\r\n"
        ).encode()
    )
    end = time.time() + secs
    buf = b""
    while time.time() < end:
        s.settimeout(max(0.05, end - time.time()))
        try:
            d = s.recv(65536)
        except Exception:
            break
        if not d:
            break
        buf += d
        if until and until(buf):
            break
    s.close()
    head, _, rest = buf.partition(b"\r\n\r\n")
    body = b""
    while rest:
        l, _, rest2 = rest.partition(b"\r\n")
        try:
            n = int(l, 16)
        except Exception:
            break
        body += rest2[:n]
        rest = rest2[n + 2 :]
        if n == 0:
            break
    ev = []
    last = None
    for l in body.decode("utf8", "replace").splitlines():
        if l.startswith("data: "):
            try:
                ev.append(json.loads(l[6:]))
            except Exception:
                pass
        elif l.startswith("id: "):
            last = l[4:]
    return int(head.split()[1]) if head else 0, ev, last


def ph_cursor(w, env=None):
    """tails that are resumed by cursor, over restarts of serve and of ingesters, with late records"""
    q = w.serve()
    A, B, C = [w.ing[x] for x in "abc"]
    svcs = ["cur", "cur2"]

    def rs(n, late=0):
        return [Rec(time.time_ns() - late + i, random.choice(LV), random.choice(svcs)) for i in range(n)]

    A.send(rs(30))
    B.send(rs(30))
    have = {}
    cursor = None
    forgiven = set()
    for step in range(9):
        p = [("service", "cur*")]
        hd = {}
        if cursor is None:
            p.append(("n", 1000))
        elif step % 2:
            hd = {"Last-Event-ID": cursor}
        else:
            p.append(("after", cursor))
        must = sel(w, ["cur*"], None, None)
        nm = "/api/v1/tail?service=cur*... followed and resumed, step %d" % step
        st, ev, last = sse(q, p, hd, 3.2)
        pr = []
        end = {"complete": True}
        if st != 200:
            out("WRONG", nm, "status %d" % st)
            return
        for o in ev:
            if "record" in o:
                have.setdefault(o["record"]["id"], o["record"]["line"]["uid"])
            elif "problem" in o or "gap" in o or "not shown" in str(o.get("note")):
                pr.append(o)
        if last:
            cursor = last
        got = list(have.values())
        if pr:
            forgiven |= set(uids(must)) - set(got)
        got += [u for u in uids(must) if u in forgiven and u not in got]
        settle(nm, bool(end and end["complete"] and not pr), sorted(got) == sorted(uids(must)), diff(got, uids(must)), False, pr)
        if step == 0:
            C.send(rs(20))
            A.send(rs(10, late=3 * H))
        if step == 1:
            A.flush()
            B.send(rs(5, late=30 * D))
            q.stop()
            q = w.serve()
        if step == 2:
            B.kill9()
            B.start()
            B.send(rs(7))
            A.send(rs(7, late=-2 * H))
        if step == 3:
            A.flush()
            B.flush()
            C.flush()
            C.send(rs(300))
            q.stop()
            q = w.serve()
        if step == 4:
            C.send(rs(20))
            A.send(rs(20))
            C.kill9()
        if step == 5:
            C.start()
            time.sleep(0.5)
        if step == 6:
            A.term()
            A.start()
            A.send(rs(9))
            B.send(rs(3, late=D))
        if step == 7:
            B.kill9()
            B.start()
            B.flush()
            A.send(rs(3))
            A.flush()
    # a poll by cursors
    A.send(rs(3))
    r = q.get("/api/v1/tail", [("service", "cur*"), ("n", 1), ("once", 1)])
    c1 = [l[4:] for l in r.body.decode().splitlines() if l.startswith("id: ")][-1]
    A.send(rs(2, late=MIN))
    m = uidc[0]
    r = q.get("/api/v1/tail", [("service", "cur*"), ("after", c1), ("once", 1)])
    b = r.body.decode()
    e = [json.loads(l[6:]) for l in b.splitlines() if l.startswith('data: {"end"')]
    settle(
        "/api/v1/tail?service=cur*&after=CURSOR OF once=1&once=1",
        bool(e and e[0]["end"]["complete"]),
        "u%dq" % m in b,
        "a record that was acknowledged after the cursor, with a time of a minute ago, %s; notes of the end: %s"
        % ("came" if "u%dq" % m in b else "did not come", e and e[0]["end"]["notes"]),
        True,
        e,
    )
    # cursors that are none
    for c in ["x", "AAAA", cursor[:-4], cursor + "AAAA", cursor.swapcase(), "%00", "A" * 9000]:
        r = q.get("/api/v1/tail", [("service", "cur*"), ("after", c), ("once", 1)])
        nm = "/api/v1/tail?after=%s..." % c[:12]
        if fail(r, nm, False):
            continue
        got = [json.loads(l[6:]) for l in r.body.decode().splitlines() if l.startswith("data: ")]
        out("right", "%s" % nm, "%d, %d events, %s" % (r.status, len(got), str(got[:1])[:150]))
    # a cursor of another question
    r = q.get("/api/v1/tail", [("service", "web"), ("after", cursor), ("once", 1)])
    if not fail(r, "/api/v1/tail?service=web&after=cursor of cur*", False, True):
        out(
            "right",
            "/api/v1/tail?service=web&after=cursor of cur*",
            "%d bytes %s" % (len(r.body), r.body[:200].decode("utf8", "replace").replace("\n", " ")),
        )
    # live: all that is acknowledged comes
    st = time.time()
    box = {}

    def tl():
        box["r"] = sse(q, [("service", "cur*"), ("after", cursor)], secs=6)

    th = threading.Thread(target=tl)
    th.start()
    time.sleep(0.6)
    mark = uidc[0]
    for i in range(6):
        for ig in (A, B, C):
            ig.send(rs(25 if i != 3 else 300, late=random.choice([0, 0, MIN, H])))
        if i == 2:
            A.flush()
        time.sleep(0.25)
    th.join()
    s, ev, last = box["r"]
    got = [e["record"]["line"]["uid"] for e in ev if "record" in e]
    exp = [x.uid for x in sel(w, ["cur*"], None, None) if x.uid > mark]
    got = [g for g in got if g > mark]
    check(sorted(got) == sorted(exp), "/api/v1/tail?service=cur*&after=... (followed for 6 s)", diff(got, exp))
    ws = WS(q.addr, "/loki/api/v1/tail?" + urlencode({"query": '{service_name=~"cur.*"}', "start": str(time.time_ns()), "limit": "1000"}))
    mark = uidc[0]
    for ig in (A, B, C):
        ig.send(rs(150))
    got = []
    end = time.time() + 5
    while time.time() < end:
        try:
            m = ws.recv(1)
        except Exception:
            continue
        if not m:
            break
        if m[0] == 1:
            got += [
                int(x["stream"]["uid"]) if "uid" in x["stream"] else int(re.search(r"u(\d+)q", v[1]).group(1))
                for x in json.loads(m[1]).get("streams") or []
                for v in x["values"]
            ]
        elif m[0] == 8:
            break
    exp = [x.uid for x in sel(w, ["cur*"], None, None) if x.uid > mark]
    got = [g for g in got if g > mark]
    check(sorted(got) == sorted(exp), 'ws /loki/api/v1/tail?query={service_name=~"cur.*"}', diff(got, exp))
    ws.close()
    q.stop()


def ph_damage(w):
    DM = int(os.environ.get("DM", "2500"))
    """blobs with flipped bits, cut, emptied, removed: no whole answer may lack their records"""
    A = w.ing["a"]
    q = w.serve()
    q0 = w.serve()
    blobs = lambda: js(q.get("/api/v1/blobs", [("service", "dmg")]))["blobs"]
    base = T0 - 5 * D
    for h in range(8):
        A.send(
            [
                Rec(
                    base + h * H + i * (3500 * S // DM),
                    random.choice(LV),
                    "dmg",
                    status=random.choice([200, 502]),
                    pad="%064x" % random.getrandbits(256),
                )
                for i in range(DM)
            ]
        )
    A.flush()
    bl = [b["name"] for b in blobs()]
    # q0 knows the indexes before the damage
    c_count(q0, ["dmg"], base, base + 9 * H)
    c_hist(q0, ["dmg"], base, base + 9 * H, "10m")
    c_rec(q0, ["dmg"], base + 30 * MIN, base + 8 * H - 30 * MIN, limit=0)
    hit = {}
    for i, n in enumerate(bl):
        f = os.path.join(w.store, n)
        d = bytearray(open(f, "rb").read())
        os.chmod(f, 0o644)
        kind = ["flip first block", "flip middle", "flip end (index)", "cut half", "cut 10 bytes", "empty", "whole", "flip near end"][i % 8]
        if kind == "flip first block":
            d[200] ^= 4
        elif kind == "flip middle":
            d[len(d) // 2] ^= 1
        elif kind == "flip end (index)":
            d[-30] ^= 1
        elif kind == "cut half":
            d = d[: len(d) // 2]
        elif kind == "cut 10 bytes":
            d = d[:-10]
        elif kind == "empty":
            d = d[:0]
        elif kind == "flip near end":
            d[-len(d) // 30] ^= 0x10
        if kind != "whole":
            open(f, "r+b").truncate(0)
            open(f, "r+b").write(d)
        hit[n] = kind
    for qq in (q0, w.serve()):
        for h in range(8):
            a = base + h * H
            b = a + H
            z = random.randrange(50) * MIN
            for x, y in ((a, b), (a + z, a + z + 7 * MIN)):
                c_count(qq, ["dmg"], x, y, whole=False)
                c_hist(qq, ["dmg"], x, y, "1m", whole=False)
                c_rec(qq, ["dmg"], x, y, whole=False, limit=0, form=random.choice(["lines", "events", "csv"]))
            c_count(qq, ["dmg"], a, b, [("text", "basket")], lambda r: "basket" in r.msg, whole=False)
            c_count(qq, ["dmg"], a, b, [("level", "error")], lambda r: r.level == "error", whole=False)
            c_count(qq, ["dmg"], a, b, [("where", "status==502")], lambda r: r.f["status"] == 502, whole=False)
            u = random.choice(sel(w, ["dmg"], a, b))
            c_rec(qq, ["dmg"], a, b, [("text", "u%dq" % u.uid)], lambda r: r.uid == u.uid, whole=False)
            c_rec(qq, ["dmg"], a, b, [("text", u.f["pad"])], lambda r: r.uid == u.uid, whole=False)
            c_rec(qq, ["dmg"], a, b, limit=3, whole=False)
            c_rec(qq, ["dmg"], a, b, first=3, whole=False, order="desc")
            c_facets(qq, ["dmg"], a, b, whole=False)
            c_facets(qq, ["dmg"], a, b, whole=False, fields="level,service")
            c_metric(qq, ["dmg"], a, b, "5m", 300, whole=False, grafana=True)
            c_metric(qq, ["dmg"], a, b, "5m", 300, whole=False, by="status")
            c_loki(qq, ["dmg"], a, b, limit=5000, whole=False, grafana=True)
            c_loki(qq, ["dmg"], a, b, limit=2, direction="forward", whole=False)
            c_tail(qq, ["dmg"], frm=a, whole=False)
        for n in bl:
            r = qq.get("/api/v1/blobs/" + n)
            if not fail(r, r.path, hit[n] == "whole"):
                g = [l for l in r.body.split(b"\n") if l]
                c = r.whole and (r.trailers.get("blobtail-complete") or r.headers.get("blobtail-complete")) == "1"
                settle(
                    r.path,
                    c,
                    len(g) == DM,
                    "%s: %d lines of the blob" % (hit[n], len(g)),
                    hit[n] == "whole",
                    r.trailers.get("blobtail-problems"),
                )
        c_services(qq, whole=False)
        c_days(qq, ["dmg"], whole=False)
    # one is removed while its index is known: reads of its hour
    f = os.path.join(w.store, bl[6])
    os.remove(f)
    r = q.get("/api/v1/blobs/" + bl[6])
    fail(r, r.path + " (removed)", False, True) or out("WRONG", r.path, "a blob that is gone is answered %d" % r.status)
    with w.lock:
        w.ledger[:] = [r for r in w.ledger if r.svc != "dmg"]
    shutil.rmtree(os.path.join(w.store, "dmg"))
    q.stop()
    q0.stop()


def newtok(f, id, *a):
    return subprocess.run([BIN + "/ingest", "token", "new", id] + list(a) + ["--file", f], capture_output=True, text=True).stdout.strip()


def ph_tokens():
    w = World("t")
    f = w.dir + "/tokens.yaml"
    fs = w.dir + "/serve.yaml"
    snd = newtok(f, "send", "--write", "*")
    rd = newtok(f, "all", "--read", "*", "--read", "_*")
    few = newtok(f, "few", "--read", "web*")
    peer = newtok(f, "peers", "--peer")
    webt = newtok(fs, "web", "--read", "web*")
    allt = newtok(fs, "all", "--read", "*")
    newtok(fs, "sys", "--read", "*", "--read", "_*")
    newtok(fs, "one", "--read", "web")
    none_ = newtok(fs, "nobody", "--write", "x")
    env = {"BLOBTAIL_PEER_TOKEN": peer}
    A = Ingester(w, "a", ["--tokens", f], env)
    B = Ingester(w, "b", ["--tokens", f], env)
    w.ing = {"a": A, "b": B}
    hs = {"Authorization": "Bearer " + snd}
    SEC = "xyzzysecret"

    def s(ig, svc, n, **k):
        ig.send([Rec(NOW - random.randrange(3 * MIN), random.choice(LV), svc, status=random.choice([200, 502]), **k) for _ in range(n)], hs)

    for ig in (A, B):
        s(ig, "web", 30)
        s(ig, "web-1", 10)
        s(ig, SEC + "-db", 25, sfield="topsecret")
        s(ig, SEC + "web", 7, sfield="topsecret")
    http(A.addr, "/ingest/web", method="POST", body=b'{"msg":"cut o\n', headers={"Content-Type": "application/x-ndjson", **hs})
    A.flush()
    for ig in (A, B):
        s(ig, "web", 12)
        s(ig, SEC + "-db", 9, sfield="topsecret")
    s(B, SEC + "-live", 5, sfield="topsecret")
    s(B, "web-live", 4)
    q = w.serve(["--tokens", fs], {"BLOBTAIL_TOKEN": rd})
    lo, hi = NOW - H, NOW + H

    def au(t):
        return {"Authorization": "Bearer " + t}

    # ids of the others, as one sees them who may
    r = q.get("/api/v1/records", [("service", SEC + "-db"), ("form", "events"), ("limit", 5)], au(allt))
    sid = [json.loads(l)["record"]["id"] for l in r.body.decode().splitlines() if '"record"' in l]
    r = q.get("/api/v1/records", [("service", "web"), ("form", "events"), ("limit", 5)], au(allt))
    wid = [json.loads(l)["record"]["id"] for l in r.body.decode().splitlines() if '"record"' in l]
    bl = [b["name"] for b in js(q.get("/api/v1/blobs", [("service", "*")], au(allt)))["blobs"]]
    sbl = [b for b in bl if b.startswith(SEC)]
    r = q.get("/api/v1/tail", [("service", "*"), ("n", 1), ("once", 1)], au(allt))
    cur = [l[4:] for l in r.body.decode().splitlines() if l.startswith("id: ")][-1]
    exp = lambda pats, pred=None: len([x for x in w.ledger if any(glob(x.svc, p) for p in pats)])
    L = [("start", lo), ("end", hi)]
    reqs = []
    for sv in ("*", "w*", "**", "*web*", "x*", "?eb", "[a-z]*", SEC + "-db", SEC + "*", "_rejected", "_*"):
        for p in ("count", "histogram", "facets", "days", "blobs", "records"):
            reqs.append(("/api/v1/" + p, [("service", sv)] + ([("sample", 0)] if p == "facets" else [])))
        reqs.append(("/api/v1/records", [("service", sv), ("form", "events"), ("limit", 0)]))
        reqs.append(("/api/v1/tail", [("service", sv), ("once", 1), ("n", 1000)]))
        reqs.append(("/api/v1/tail", [("service", sv), ("once", 1), ("after", cur)]))
        reqs.append(("/api/v1/records", [("service", sv), ("live", "only")]))
        reqs.append(("/api/v1/count", [("service", sv), ("live", "off")]))
        reqs.append(("/api/v1/count", [("service", "web"), ("service", sv)]))
    for lqs in (
        "{}",
        '{service_name=~".+"}',
        '{service_name="%s-db"}' % SEC,
        '{service_name!="web"}',
        '{service_name!~"web.*"}',
        '{service_name=~".*db"}',
        '{sfield="topsecret"}',
        '{service_name=~"_.*"}',
    ):
        reqs += [
            ("/loki/api/v1/query_range", [("query", lqs), ("limit", 5000)] + L),
            ("/json/loki/api/v1/query_range", [("query", lqs + ' |= "topsecret"'), ("limit", 5000)] + L),
            ("/loki/api/v1/query_range", [("query", "sum by (service_name)(count_over_time(%s[10m]))" % lqs), ("step", 60)] + L),
            ("/loki/api/v1/query", [("query", "sum by (service_name)(count_over_time(%s[1h]))" % lqs), ("time", hi)]),
            ("/loki/api/v1/series", [("match[]", lqs)] + L),
            ("/loki/api/v1/index/volume", [("query", lqs)] + L),
            ("/loki/api/v1/index/volume_range", [("query", lqs), ("step", 60)] + L),
            ("/loki/api/v1/index/stats", [("query", lqs)] + L),
            ("/loki/api/v1/detected_labels", [("query", lqs)] + L),
            ("/loki/api/v1/detected_fields", [("query", lqs)] + L),
            ("/loki/api/v1/detected_field/sfield/values", [("query", lqs)] + L),
            ("/loki/api/v1/detected_field/service/values", [("query", lqs)] + L),
            ("/loki/api/v1/label/service_name/values", [("query", lqs)] + L),
            ("/loki/api/v1/label/sfield/values", [("query", lqs)] + L),
            ("/api/v1/count", [("logql", lqs)]),
            ("/api/v1/records", [("logql", lqs)]),
            ("/loki/api/v1/patterns", [("query", lqs)] + L),
        ]
    reqs += [
        ("/api/v1/services", []),
        ("/api/v1/services", [("since", "1h")]),
        ("/api/v1/services", [("live", "only")]),
        ("/api/v1/ingesters", []),
        ("/api/v1/whoami", []),
        ("/api/v1/openapi.json", []),
        ("/metrics", []),
        ("/loki/api/v1/labels", L),
        ("/loki/api/v1/label/service_name/values", L),
        ("/loki/api/v1/series", L),
        ("/loki/api/v1/drilldown-limits", []),
        ("/prometheus/api/v1/rules", []),
    ]
    for i in sid[:2]:
        reqs += [
            ("/api/v1/records/%s-db/%s" % (SEC, i), []),
            ("/api/v1/records/web/%s" % i, []),
            ("/api/v1/context", [("service", "web"), ("id", i), ("services", "all")]),
            ("/api/v1/context", [("service", SEC + "-db"), ("id", i)]),
            ("/api/v1/records/*/%s" % i, []),
            ("/api/v1/records/web%%2F..%%2F%s-db/%s" % (SEC, i), []),
        ]
    for i in wid[:2]:
        reqs += [
            ("/api/v1/context", [("service", "web"), ("id", i), ("services", "all"), ("before", 100), ("after", 100)]),
            ("/api/v1/context", [("service", "*"), ("id", i)]),
            ("/api/v1/records/web/%s" % i, []),
        ]
    for b in sbl[:2] + [
        "web/../" + sbl[0],
        "web/%2e%2e/" + sbl[0],
        "web//../" + sbl[0],
        "../" + sbl[0],
        "_store",
        ".tables",
        ".wal",
        "_horizon",
        "web/2026",
    ]:
        reqs += [("/api/v1/blobs/" + b, []), ("/api/v1/blobs/" + b, [("stored", 1)]), ("/api/v1/blobs/" + b, [("partial", 1)])]
    for b in sbl[:1]:
        for h in ({"Range": "bytes=0-20"}, {"Accept-Encoding": "zstd"}, {"If-None-Match": "*"}):
            r = q.get("/api/v1/blobs/" + b, None, {**au(webt), **h})
            check(r.status == 404, "/api/v1/blobs/... of another %s" % h, "status %d" % r.status)
        r = q.get("/api/v1/blobs/" + b, None, au(webt), method="HEAD")
        r2 = q.get("/api/v1/blobs/nosuch/x/000001.log", None, au(webt), method="HEAD")
        check(r.status == r2.status == 404, "HEAD /api/v1/blobs/... of another", "status %d, of none %d" % (r.status, r2.status))
    for p, par in reqs:
        for hd in ({}, GRAF) if "loki" in p else ({},):
            r = q.get(p, par, {**au(webt), **hd})
            b = r.body + str(r.trailers).encode() + str(r.headers).encode()
            # what was asked may be said again
            echo = str(par) + p
            bb = b.decode("utf8", "replace")
            leak = (
                "topsecret" in bb.replace('|= "topsecret"', "").replace('sfield=\\"topsecret', "").replace('sfield="topsecret', "")
                and "{sfield=" not in echo
                or (SEC in bb and SEC not in echo)
                or (SEC + "-live" in bb)
                or (SEC + "web" in bb and SEC + "web" not in echo)
            )
            if r.status >= 500:
                out("WRONG", r.path, "%d %s" % (r.status, bb[:200]))
                continue
            note = "%d, %d bytes" % (r.status, len(r.body))
            # and the numbers
            ok = True
            if p == "/api/v1/count" and r.status == 200 and par == [("service", "*")]:
                ok = js(r)["records"] == exp(["web*"]) and js(r)["complete"]
                note += " records %d of %d" % (js(r)["records"], exp(["web*"]))
            out(
                "WRONG" if leak or not ok else "refused" if r.status >= 400 else "right",
                r.path,
                (" LEAK " if leak else "") + note + (" " + bb[:250] if leak else ""),
            )
    # the same with a name that exists nowhere: nothing may differ
    for p in ("count", "histogram", "records", "facets", "days", "blobs", "tail"):
        rs = [
            q.get("/api/v1/" + p, [("service", n)] + ([("once", 1)] if p == "tail" else []), au(webt)) for n in (SEC + "-db", SEC + "-dd")
        ]
        a, b = [x.body.decode().replace(SEC + "-db", "N").replace(SEC + "-dd", "N") for x in rs]
        check(
            (rs[0].status, a) == (rs[1].status, b),
            "/api/v1/%s?service=one that may not be read" % p,
            "is answered as one that is none" if a == b else "%d %s against %d %s" % (rs[0].status, a[:150], rs[1].status, b[:150]),
        )
    # nobody, wrong, missing
    for h, st in (
        ({}, 401),
        (au("web.wrong"), 401),
        (au(none_), None),
        ({"Authorization": "Basic " + base64.b64encode(webt.replace(".", ":", 1).encode()).decode()}, 200),
        ({"Authorization": "Basic %%%"}, 401),
        ({"Authorization": "Bearer " + webt + "x"}, 401),
        ({"Authorization": "bearer " + webt}, None),
    ):
        for p in (
            "/api/v1/services",
            "/loki/api/v1/labels",
            "/api/v1/records?service=*",
            "/loki/api/v1/query_range?query=%7B%7D",
            "/api/v1/whoami",
        ):
            r = q.get(p, None, h)
            bad = (
                (st and r.status != st)
                or (h == {} and r.status != 401)
                or SEC in r.body.decode("utf8", "replace")
                or (h.get("Authorization", "").endswith(none_) and b'"web' in r.body)
            )
            out(
                "WRONG" if bad else "refused" if r.status >= 400 else "right",
                p + " with " + str(h)[:40].split(webt[:12])[0],
                "status %d %s" % (r.status, r.body[:80]),
            )
    ws = WS(q.addr, "/loki/api/v1/tail?query=%7B%7D&start=" + str(lo), au(webt))
    s(B, SEC + "-db", 3)
    s(B, "web", 3)
    n = 0
    leak = False
    end = time.time() + 3
    while time.time() < end:
        try:
            m = ws.recv(1)
        except Exception:
            continue
        if not m:
            break
        leak |= SEC.encode() in m[1]
        n += 1
    out(
        "WRONG" if leak or not n else "right",
        "ws /loki/api/v1/tail?query={} with a token of web*",
        "%d frames%s" % (n, " LEAK" if leak else ""),
    )
    ws.close()
    ws = WS(q.addr, "/loki/api/v1/tail?query=%7B%7D")
    out("refused" if ws.status == 401 else "WRONG", "ws /loki/api/v1/tail without a token", "status %d" % ws.status)
    ws.close()
    # serve itself may read less of the unflushed ones than its client
    q3 = w.serve(["--tokens", fs], {"BLOBTAIL_TOKEN": few}, tok=au(allt))
    q4 = w.serve(["--tokens", fs], {}, tok=au(allt))
    for qq in (q3, q4):
        for svcs in (["*"], ["web*"], [SEC + "*"], [SEC + "-db"], [SEC + "-live"], ["web"], ["web-live"], ["web", SEC + "-db"]):
            c_count(qq, svcs, None, None, whole=False)
            c_hist(qq, svcs, lo, hi, "1m", whole=False)
            c_rec(qq, svcs, lo, hi, limit=0, whole=False)
            c_rec(qq, svcs, lo, hi, limit=0, whole=False, form="events")
            c_loki(qq, svcs, lo, hi, limit=5000, whole=False, grafana=True)
            c_loki(qq, svcs, lo, hi, limit=5000, whole=False)
            c_tail(qq, svcs, n=1000, whole=False)
            c_facets(qq, svcs, None, None, whole=False)
            c_days(qq, svcs, whole=False)
            c_blobs(qq, svcs, whole=False, fetch=0)
            c_metric(qq, svcs, NOW - 10 * MIN, NOW + MIN, "5m", 60, whole=False, grafana=True)
            c_vol(qq, svcs, lo, hi, whole=False, hdr=GRAF)
            c_series(qq, svcs, lo, hi, whole=False, hdr=GRAF)
        c_services(qq, whole=False)
        c_services(qq, lo, hi, whole=False)
        c_values(qq, "service_name", lo, hi, {x.svc for x in w.ledger}, whole=False, hdr=GRAF)
    for x in (q, q3, q4):
        x.stop()
    A.term()
    B.term()


def raw(q, path, expect, why="", hdr=None, timeout=30, method="GET", body=None, wsize=None):
    """expect: '4xx', 'ok', or a function of (r) -> (ok, note)"""
    r = q.get(path, None, hdr, timeout=timeout, method=method, body=body)
    w = (method + " " if method != "GET" else "") + path
    if r.status == 0:
        out("WRONG", w, "no answer: %s after %.1f s" % (r.err, getattr(r, "t", 0)))
        return r
    b = r.body[:160].decode("utf8", "replace").replace("\n", " ")
    if r.status >= 500 and r.status not in (503, 504):
        out("WRONG", w, "%d %s" % (r.status, b))
        return r
    if expect == "4xx":
        out("refused" if 400 <= r.status < 500 and r.body else "WRONG", w, "%s: %d %s" % (why, r.status, b))
    elif expect == "any":
        out("refused" if r.status >= 400 else "right" if r.whole else "incomplete", w, "%s: %d %s %s" % (why, r.status, r.err, b[:90]))
    else:
        ok, n = expect(r)
        out("refused" if ok and r.status >= 400 else "right" if ok else "WRONG", w, "%s: %d %s" % (why, r.status, n))
    return r


def ph_odd(w):
    """requests that nobody should send"""
    q = w.serve()
    e = quote
    A = w.ing["a"]
    base = T0 - 2 * D
    tie = [Rec(base, "info", "tie", status=i % 3) for i in range(40)]
    A.send(tie)
    A.flush()
    A.send([Rec(base, "warn", "tie", status=i) for i in range(40)])
    A.send(
        [
            Rec(
                base + i,
                "info",
                "edge-x",
                msg='a+b %d 100%% "q" \\ ü 🙂 u%dq' % (i, uidc[0] + 1),
                **{"k.dot": i, "sp ace": "v%d" % i, "n": None if i % 2 else 1.5, "big": 2**60 + i, "o": {"p": [1, {"q": i}]}},
            )
            for i in range(10)
        ]
    )
    n = lambda k: (
        lambda r: ((js(r) or {}).get("records") == k and js(r)["complete"], "records %s, expected %d" % ((js(r) or {}).get("records"), k))
    )
    lines = lambda k: (
        lambda r: (
            r.whole and len([l for l in r.body.split(b"\n") if l]) == k,
            "%d lines, expected %d" % (len([l for l in r.body.split(b"\n") if l]), k),
        )
    )
    C = "/api/v1/count?service=tie"
    R = "/api/v1/records?service=tie"
    for x in (
        *"""
levle=error service= limit=5 order=desc foo from=yesterdayish from=2026-13-01 to=@ since=-5m since=0s since=1M
day=today&from=now level=nope level= level=warn++ where= where=( where=status+%3E%3E+1 expr=%5B expr=(%3FP%3Cx
text= words= not=2 not=1 fold=maybe live=ON timezone=Mars from=2026-11-26T00:00:00Z&from=2026-11-25T00:00:00Z
from=2026-11-26&to=2026-11-25 to=2026-11-25&since=1h&day=today logql=%7B%7D live=auto&live=off
level=error&level=warn where=true&where=false partial=1 text=%FF%FE text=% timezone=UTC&timezone=UTC
from=99999999999999999999 from=1e400 from=-1 to=0 from=9223372036854775807 from=@9999999999999
""".split(),
        "where=" + "(" * 2000 + "1" + ")" * 2000,
        "where=" + "not%20" * 5000 + "true",
        "expr=" + "a%7B1000%7D" * 50,
        "expr=" + "(a*)*" * 300,
        "text=" + "x" * 20000,
        *"""
where=msg+matches+%22%28%22 where=nosuch(1) where=status where=1 where=%22a%22 where=all(1..100000000,%20true)
where=len(1..1000000)>0 where=repeat(msg,100000000)==msg where=reduce(1..100000,%20%23acc%2B%23)>0
where=map(1..1000,%20map(1..1000,%20map(1..1000,1)))!=nil where=status%20/%200%20==%201
where=status%20%25%200%20==%201 where=big%20**%209999>0
""".split(),
    ):
        raw(q, C + "&" + x, "any", "odd")
    for x in (
        *"""
limit=-1 limit=x limit=1.5 limit=99999999999999999999 first=-1 first=1&limit=1 order=up form=xml form=csv
fields=&form=csv fields=, limit=100001 first=100001 order= limit= limit=1&limit=2 download=2 buckets=5
fields=uid&form=csv&form=lines limit=+5 limit=0x10 limit=1e3
""".split(),
    ):
        raw(q, R + "&" + x, "any", "odd")
    for x in (
        *"""
by=0s by=-1m by=1ns&from=2020-01-01 by=1s&from=1970-01-01 by=x by=1m&buckets=5 buckets=0 buckets=100001
buckets=-1 split=x split= by=1000000d by=1M by= by=1us by=36h by=7m by=1w by=1y
""".split(),
    ):
        raw(q, "/api/v1/histogram?service=tie&" + x, "any", "odd")
    for x in (
        *"""
top=0 top=1001 top=-1 sample=-1 sample=1000001 fields= fields=,, fields=%00 top=1e3
""".split(),
        "fields=" + ",".join("f%d" % i for i in range(400)),
        "sample=0&sample=1",
    ):
        raw(q, "/api/v1/facets?service=tie&" + x, "any", "odd")
    for p in (
        "/api/v1/records/tie/x",
        "/api/v1/records/tie/1-2-3",
        "/api/v1/records/tie/%d-%s-0" % (base, "0" * 32),
        "/api/v1/records/tie/-1-%s-99999999999999999999" % ("0" * 32),
        "/api/v1/records/tie/",
        "/api/v1/records/tie",
        "/api/v1/context",
        "/api/v1/context?service=tie&id=1-1-1",
        "/api/v1/context?service=tie&id=%d-%s-0" % (base, "f" * 32),
        *"""
/api/v1/context?service=tie /api/v1/blobs/ /api/v1/blobs/..%2f..%2fetc%2fpasswd /api/v1/blobs/../../etc/passwd
/api/v1/blobs/%00 /api/v1/blobs/tie/2026 /api/v1/blobs/.tables /api/v1/blobs/.wal/lease /api/v1/blobs/_store
/api/v1/nosuch /api/v2/count /api/v1 /api/v1/ //api/v1/count /api/v1/count/ /loki/api/v1/label//values
/loki/api/v1/label/%00/values /loki/api/v1/label/nosuch/values /api/v1/services?service=tie
/api/v1/services?limit=1 /api/v1/services?since=x /api/v1/ingesters?x=1 /api/v1/whoami?x=1
/api/v1/openapi.json?x=1 /api/v1/days /api/v1/days?service=nosuch /api/v1/tail
/api/v1/tail?service=nosuch&once=1 /api/v1/tail?service=tie&n=-1 /api/v1/tail?service=tie&n=10001
/api/v1/tail?service=tie&live=off /api/v1/tail?service=tie&to=now&once=1
/api/v1/tail?service=tie&limit=3&once=1 /api/v1/blobs?service=tie&from=2026-13
""".split(),
    ):
        raw(q, p, "any", "odd")
    for m in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"):
        for p in ("/api/v1/count?service=tie", "/loki/api/v1/push", "/api/v1/tail?service=tie&once=1"):
            r = q.get(p, None, method=m, body=b"" if m != "HEAD" else None)
            out(
                "WRONG"
                if r.status >= 500 or r.status == 0 or (r.status == 200 and m not in ("HEAD", "OPTIONS") and "loki" not in p)
                else "refused"
                if r.status >= 400
                else "right",
                m + " " + p,
                "status %d" % r.status,
            )
    body = urlencode({"query": 'sum(count_over_time({service_name="tie"}[1h]))', "time": str(base + MIN)}).encode()
    raw(
        q,
        "/loki/api/v1/query",
        lambda r: (r.status == 200 and js(r)["data"]["result"][0]["value"][1] == "80", "%s" % r.body[:120]),
        "a form by POST, as Grafana and logcli send it",
        {"Content-Type": "application/x-www-form-urlencoded"},
        method="POST",
        body=body,
    )
    # right answers that are easy to get wrong
    ts = rfc(base)
    raw(q, C, n(80), "ties")
    raw(q, C + "&from=" + ts, n(80), "from is within")
    raw(q, C + "&to=" + ts, n(0), "to is not")
    raw(q, C + "&from=" + ts + "&to=" + rfc(base + 1), n(80), "one ns")
    raw(q, C + "&from=" + rfc(base + 1), n(0), "behind")
    raw(
        q,
        C
        + "&from="
        + e(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(base // S + 7200)))
        + "+02:00&to="
        + e(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(base // S + 7201)))
        + "%2B02:00",
        n(80),
        "zones, + typed and encoded",
    )
    raw(q, C + "&from=%d&to=%d" % (base // S, base // S + 1), n(80), "seconds")
    raw(q, C + "&from=%d&to=%d" % (base // 10**6, base // 10**6 + 1), n(80), "ms")
    raw(q, C + "&from=%d&to=%d" % (base, base + 1), n(80), "ns")
    raw(q, C + "&from=@%d&to=@%d.5" % (base // S, base // S), n(80), "@")
    raw(q, C + "&day=" + rfc(base)[:10], n(80), "the day")
    raw(q, C + "&day=%s&timezone=%%2B05:30" % time.strftime("%Y-%m-%d", time.gmtime(base // S + 19800)), n(80), "the day of a zone")
    raw(q, C + "&day=" + rfc(base - D)[:10], n(0), "the day before")
    raw(q, C + "&service=tie", n(80), "the same service twice")
    raw(q, C + "&service=t*&service=tie", n(80), "glob and name")
    raw(
        q,
        C + "&service=nosuchname",
        lambda r: (js(r)["records"] == 80 and js(r).get("absent") == ["nosuchname"], str(js(r).get("absent"))),
        "absent",
    )
    raw(q, "/api/v1/count?service=tie,edge-x", "any", "a list")
    raw(q, "/api/v1/count?service=TIE", "any", "case")
    raw(q, "/api/v1/count?service=t%69e", n(80), "encoded")
    raw(q, "/api/v1/count?s%65rvice=tie", n(80), "encoded name")
    raw(q, "/api/v1/count?service=tie;level=error", "any", "semicolon")
    raw(q, "/api/v1/count?service=tie&amp;level=error", "4xx", "amp")
    raw(q, C + "&level=warn+", n(40), "level=warn+ typed")
    raw(q, C + "&level=warn%2B", n(40), "encoded")
    raw(q, C + "&level=warn%20", n(40), "blank")
    raw(q, C + "&level=INFO", n(40), "case")
    raw(q, C + "&level=info,warn", n(80), "two")
    raw(q, C + "&level=trace+", n(80), "all")
    raw(q, C + "&level=fatal+", n(0), "fatal")
    raw(q, R + "&limit=0", lines(80), "all")
    raw(q, R + "&first=0", lines(80), "all")
    raw(q, R + "&limit=1", lines(1), "tie at the limit")
    raw(q, R + "&first=1", lines(1), "tie at the limit")
    raw(q, R + "&limit=79&order=desc", lines(79), "ties")
    raw(q, R + "&first=80&order=desc", lines(80), "ties")
    raw(q, R + "&limit=100000", lines(80), "the largest")
    raw(q, R + "&limit=9000000000000000000&order=desc", lines(80), "a huge one")
    raw(q, R + "&live=off", lines(40), "blobs alone")
    raw(q, R + "&live=only", lines(40), "unflushed alone")
    r = q.get(R + "&live=off")
    check(r.trailers.get("blobtail-warnings"), "/api/v1/records?live=off", "trailers %s" % r.trailers)
    r = q.get(C + "&live=off")
    check(
        js(r)["warnings"] and js(r)["records"] == 40,
        "/api/v1/count?live=off",
        "warnings %s records %s" % (js(r)["warnings"], js(r)["records"]),
    )
    X = "/api/v1/count?service=edge-x&"
    for p, k in (
        ("text=a%2Bb", 10),
        ("text=a+b", 0),
        ("text=100%25", 10),
        ("text=%22q%22", 10),
        ("text=%5C", 10),
        ("text=%C3%BC", 10),
        ("text=%F0%9F%99%82", 10),
        ("text=a%2Bb+1+", 1),
        ("expr=a%5C%2Bb", 10),
        ("expr=%5Ea%5C%2Bb+5", 1),
        ("where=n+%3D%3D+1.5", 5),
        ("where=n+%3D%3D+nil", 5),
        ("where=n+!%3D+1.5", 5),
        ("where=not+(n+%3E+1)", 0),
        ("where=n+%3E+1+or+true", 10),
        ("where=nosuch+%3D%3D+nil", 10),
        ("where=nosuch+%3E+1", 0),
        ("where=o.p+!%3D+nil", 10),
        ("where=$env%5B%22sp+ace%22%5D+%3D%3D+%22v3%22", 1),
        ("where=$env%5B%22k.dot%22%5D+%3D%3D+4", 1),
        ("where=k.dot+%3D%3D+4", 1),
        ("text=k.dot%3D4", 1),
        ("text=n%3D1.5", 5),
        ("words=q", 10),
        ("text=a%2Bb&not=1", 0),
        ("text=zzz&not=1", 10),
        ("text=UE&fold=1", 0),
        ("text=A%2BB&fold=1", 10),
        ("where=status+in+%5B1%5D", 0),
        ("where=msg+matches+%22a.b+%5B0-4%5D%22", 5),
        ("where=level+%3D%3D+%22info%22", 10),
        ("where=service+%3D%3D+%22edge-x%22", 10),
        ("where=ts+%3E+%222026%22", 10),
    ):
        raw(q, X + p, n(k), "expected %d" % k)
    # LogQL
    win = "&start=%d&end=%d" % (base - MIN, base + MIN)

    def ql(query, exp, why="", lim=1000, path="/loki/api/v1/query_range", hdr=None, extra=""):
        return raw(q, path + "?query=" + e(query) + win + "&limit=%d" % lim + extra, exp, why, hdr)

    def nl(k):
        return lambda r: (
            r.status == 200 and not js(r).get("warnings") and sum(len(s["values"]) for s in js(r)["data"]["result"]) == k,
            "%s lines, expected %d %s"
            % (r.status == 200 and sum(len(s["values"]) for s in js(r)["data"]["result"]), k, r.body[:100] if r.status != 200 else ""),
        )

    T = '{service_name="tie"} '
    E = '{service_name="edge-x"} '
    for lg, k in (
        (T, 80),
        (T + '| status="1"', 14),
        (T + "| status=1", 14),
        (T + "| status>38", 1),
        (T + "| status!=1", 66),
        (T + '| status=~"1|2"', 28 - 0),
        (T + '| status!~"1.*"', None),
        (T + '|= "evt" != "evt"', 0),
        (T + '|= ""', 80),
        (T + '!= ""', 0),
        (T + '|~ ".*"', 80),
        (T + '!~ ".*"', 0),
        (T + "| json", 80),
        (T + "| logfmt", 80),
        (T + '| level="warn"', 40),
        ('{service_name="tie",level!="warn"}', 40),
        ('{service_name="tie",detected_level="warn"}', 40),
        ('{service_name="tie",status="1"}', 14),
        ('{service_name=~"tie|edge-x"}', 90),
        ('{service_name!~"tie|edge-x"}', 0 if False else None),
        ('{service_name="tie",service_name="edge-x"}', 0),
        ('{service_name="tie"} | line_format "{{.status}}" |= "1"', None),
        (T + '| line_format "x" |= "x"', 80),
        (T + '| line_format "x" != "x"', 0),
        (T + '| label_format a=status | a="1"', 14),
        (T + "| drop status", 80),
        (T + "| keep service_name", 80),
        (T + "| decolorize", 80),
        (T + '| __error__=""', 80),
        (T + "| status > 1 and status < 3", 14),
        (T + '| status > 1 or level="info"', None),
        (T + "| status=1 | status=2", 0),
        (T + "| json | status=1", 14),
        (T + '| regexp "u(?P<num>\\\\d+)q" | num > 0', 80),
        (T + '| pattern "evt <id> <_>" | id != ""', 80),
        (T + '| line_format "{{ .nosuch }}"', 80),
        (T + '|= "u" or "nosuch"', 80),
        (T + '|> "evt <_>"', 80),
        (T + "| unpack", 80),
        (E + '|= "a+b"', 10),
        (E + '|= `"q"`', 10),
        (E + '|= "\\\\"', 10),
        (E + '|= "ü"', 10),
        (E + "| k_dot=4", 1),
        (E + '| o_p != ""', None),
        (E + "| big >= 1", 10),
        (E + "| n = 1.5", 5),
        (E + "| n != 1.5", None),
        (E + "| n > 1", 5),
        (E + '|= ip("1.2.3.4")', None),
        (T + "| status = 1KB", None),
        (T + "| distinct status", None),
    ):
        ql(lg, nl(k) if k is not None else "any", "LogQL")
        if k is not None and "line_format" not in lg:
            raw(
                q,
                "/api/v1/count?logql=" + e(lg) + "&from=%d&to=%d" % (base - MIN, base + MIN),
                lambda r, k=k: (
                    (r.status == 404 and k == 0) or (r.status == 200 and js(r)["records"] == k and js(r)["complete"]),
                    "%s" % r.body[:90],
                ),
                "the same by logql=",
            )
    for lg in (
        "{",
        "{}}",
        "",
        "{service_name=}",
        '{service_name="tie"} |',
        '{service_name="tie"} | nosuchstage',
        '{service_name="tie"} | line_format "{{"',
        '{service_name="tie"} | line_format "{{ nosuch . }}"',
        'sum({service_name="tie"})',
        'rate({service_name="tie"})',
        'count_over_time({service_name="tie"}[0s])',
        'count_over_time({service_name="tie"}[-1m])',
        'count_over_time({service_name="tie"}[1m] offset 1h)',
        'count_over_time({service_name="tie"}[1m] @ 5)',
        'topk(0, count_over_time({service_name="tie"}[1m]))',
        'absent_over_time({service_name="nosuch"}[1m])',
        'quantile_over_time(0.99, {service_name="tie"} | unwrap status [1m])',
        'sum_over_time({service_name="tie"} | unwrap nosuch [1m])',
        "1",
        "1+1",
        "vector(1)",
        'count_over_time({service_name="tie"}[1m]) / 0',
        'count_over_time({service_name="tie"}[1m]) > bool 1',
        'label_replace(count_over_time({service_name="tie"}[1m]),"a","$1","b","(")',
        '{a="b"',
        "(" * 3000 + "1" + ")" * 3000,
        '{service_name=~"("}',
        '{service_name=~"' + "(a*)*" * 500 + '"}',
        '{service_name="tie"}' + ' |= "e"' * 3000,
        '{service_name="tie"} # c',
        '{service_name="tie"}\n|= "evt"',
        "variants(count_over_time({}[1m])) of ({}[1m])",
        '{service_name="tie"} | json x="a[","y="',
    ):
        ql(lg, "any", "LogQL")
    for lg, why in (
        (T + '| line_format "{{ repeat 100000000 \\"x\\" }}"', "blow up"),
        (T + "| line_format `{{ range $i := until 100000000 }}xxxxxxxx{{ end }}`", "blow up"),
        (T + '| line_format `{{ define "a" }}{{ template "a" . }}{{ template "a" . }}{{ end }}{{ template "a" . }}`', "recursion"),
        (T + "| line_format `{{ . }}{{ . }}`", "."),
        (T + '| line_format `{{ printf "%1000000000d" 1 }}`', "width"),
        (T + '| line_format `{{ printf "%.1000000000f" 1.0 }}`', "precision"),
        (T + '| label_format a=`{{ repeat 20000000 "x" }}`', "blow up"),
        (T + '| line_format `{{ nindent 100000000 "x" }}`', "indent"),
        (T + "| line_format `{{ indent 900000000 .msg }}`", "indent"),
        (T + '| line_format `{{ regexReplaceAll "" .status (repeat 100000 "x") }}`', "replace"),
        (T + '| line_format `{{ replace "" (repeat 10000 "y") (repeat 10000 "x") }}`', "replace"),
        (T + '| line_format `{{ fromJson "[[[[[[[" }}`', "json"),
        (T + '| line_format `{{ repeat -1 "x" }}`', "negative"),
        (T + '| line_format `{{ substr 5 2 "abc" }}{{ trunc -9 "a" }}`', "bounds"),
        (T + '| line_format `{{ index . "a" "b" }}`', "index"),
        (T + '| line_format `{{ slice "abc" 9 }}`', "slice"),
        (T + '| line_format `{{ alignLeft 2000000000 "a" }}`', "align"),
        (T + '| line_format `{{ alignRight 2000000000 "a" }}`', "align"),
        (T + "| line_format `{{ mul 9223372036854775807 2 }}{{ div 1 0 }}{{ mod 1 0 }}`", "div"),
        (T + '| line_format `{{ date "2006" now }}{{ unixEpoch now }}`', "date"),
        (T + '| line_format `{{ toDate "2006" "x" }}`', "date"),
        (T + '| line_format `{{ env "HOME" }}`', "env"),
        (T + '| line_format `{{ readFile "/etc/passwd" }}`', "file"),
        (T + "| line_format `{{ call .status }}`", "call"),
        (T + "| line_format `" + "{{ with . }}" * 3000 + "{{ end }}" * 3000 + "`", "deep"),
    ):
        r = ql(lg, "any", why)
        if b"root:" in r.body or b'"/root' in r.body:
            out("WRONG", lg, "it reads files or the environment")
    for p in (
        *"""
query_range?query=%7B%7D&start=x query_range?query=%7B%7D&limit=-1 query_range?query=%7B%7D&limit=0
query_range?query=%7B%7D&limit=99999999999999 query_range?query=%7B%7D&direction=up
query_range?query=%7B%7D&start=2&end=1 query_range?query=%7B%7D&step=0
query_range?query=rate(%7B%7D%5B1m%5D)&step=0 query_range?query=rate(%7B%7D%5B1m%5D)&step=-1
query_range?query=rate(%7B%7D%5B1m%5D)&step=0.0000001&since=1h
query_range?query=rate(%7B%7D%5B1m%5D)&step=1&start=0 query_range query?query=
query_range?query=%7B%7D&start=0&end=99999999999999999999 query_range?query=%7B%7D&start=1e300
query_range?query=%7B%7D&start=NaN query_range?query=rate(%7B%7D%5B1m%5D)&step=NaN
query_range?query=%7B%7D&interval=1s query_range?query=%7B%7D&since=1h&delay=1
query?query=rate(%7B%7D%5B1m%5D)&time=-1 series?match[]=%7B series?match=%7Bservice_name%3D%22tie%22%7D
label/service_name/values?query=%7B index/volume?query=%7B%7D&limit=-1
index/volume?query=%7B%7D&targetLabels=nosuch index/volume?query=%7B%7D&aggregateBy=labels
index/volume_range?query=%7B%7D&step=0 index/stats detected_fields?query=%7B%7D&line_limit=-1&limit=0
detected_fields detected_labels?query=%7B patterns?query=%7B%7D format_query?query=%7B tail?query=%7B%7D
""".split(),
    ):
        raw(q, "/loki/api/v1/" + p, "any", "odd")
    # headers
    for h, st in (
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Accept-Encoding": "gzip"}, 200),
        ({"Accept-Encoding": "zstd;q=0, br"}, 200),
        ({"Accept": "text/csv"}, None),
        ({"Accept": "image/png"}, None),
        ({"X-Big": "a" * 70000}, 431),
        ({"Last-Event-ID": "x"}, None),
        ({"X-Query-Tags": "a"}, 200),
    ):
        r = q.get("/api/v1/count?service=tie", None, h)
        out(
            "WRONG" if (st and r.status != st) or r.status >= 500 else "right" if r.status == 200 else "refused",
            "/api/v1/count?service=tie with %s" % str(h)[:50],
            "status %d, expected %s" % (r.status, st),
        )
    host, port = q.addr.split(":")
    for rw, why in (
        (b"GET /api/v1/records?service=tie HTTP/1.0\r\nHost: %s\r\n\r\n" % q.addr.encode(), "HTTP/1.0 without partial=1"),
        (b"GET /api/v1/records?service=tie&partial=1 HTTP/1.0\r\nHost: %s\r\n\r\n" % q.addr.encode(), "HTTP/1.0 with partial=1"),
        (b"GET / HTTP/9.9\r\n\r\n", "a version"),
        (b"\x16\x03\x01\x00\x00", "TLS"),
        (b"GET /api/v1/count?service=tie HTTP/1.1\r\n\r\n", "no Host"),
        (b"GET /api/v1/count?service=\x00 HTTP/1.1\r\nHost: %s\r\n\r\n" % q.addr.encode(), "a zero"),
    ):
        r = http(q.addr, "/", raw=rw, timeout=8)
        out("refused" if r.status >= 400 or r.status == 0 else "right", "raw " + why, "status %d %s" % (r.status, r.body[:60]))
    # facts about one record and its neighbours
    r = q.get("/api/v1/records?service=edge-x&form=events&limit=0")
    ids = [json.loads(l)["record"]["id"] for l in r.body.decode().splitlines() if '"record"' in l]
    for i, x in enumerate(ids):
        r = q.get("/api/v1/records/edge-x/" + x)
        j = js(r)
        ok = (
            r.status == 200
            and j["complete"]
            and j.get("previous") == (ids[i - 1] if i else None)
            and j.get("next") == (ids[i + 1] if i + 1 < len(ids) else None)
        )
        check(ok, "/api/v1/records/edge-x/ID %d" % i, "neighbours %s" % ("right" if ok else r.body[:200]))
    r = q.get("/api/v1/records?service=tie&form=events&limit=0")
    ids = [json.loads(l)["record"]["id"] for l in r.body.decode().splitlines() if '"record"' in l]
    for i in (0, 1, 39, 40, 79):
        for bf, af in ((0, 0), (3, 3), (1000, 1000), (100, 0)):
            r = q.get("/api/v1/context", [("service", "tie"), ("id", ids[i]), ("before", bf), ("after", af)])
            g = [json.loads(l)["record"] for l in r.body.decode().splitlines() if '"record"' in l]
            ex = ids[max(0, i - bf) : i + 1 + af]
            check(
                [x["id"] for x in g] == ex and [x["id"] for x in g if x.get("anchor")] == [ids[i]],
                r.path,
                "expected %d, got %d" % (len(ex), len(g)),
            )
    q.stop()


def ph_zones(w):
    """histograms by days, weeks and hours of zones, over changes of the clock"""
    q = w.serve()
    A = w.ing["a"]
    rs = []

    def at(*a):
        return int(datetime.datetime(*a, tzinfo=datetime.timezone.utc).timestamp()) * S

    for y in (at(2026, 10, 24, 20), at(2026, 3, 28, 20), at(2026, 11, 1, 0)):
        for i in range(0, 36 * 4):
            rs.append(Rec(y + i * 15 * MIN + random.choice([0, 0, -1, 1]), random.choice(LV), "zone", status=i % 5))
    A.send(rs)
    A.flush()
    A.send([Rec(r.ts + 7, r.level, "zone", status=1) for r in rs[::5]])
    for z in (
        *"""
UTC Europe/Berlin America/New_York Asia/Kathmandu Australia/Lord_Howe America/St_Johns +05:30 -03:17
Pacific/Apia
""".split(),
    ):
        for by in ("1d", "1w", "1h", "6h", "1m", "15m", "12h", "2d"):
            a, b = random.choice([(None, None), (at(2026, 10, 24, 21, 30), at(2026, 10, 26, 1)), (at(2026, 3, 28), at(2026, 3, 30))])
            r = q.get("/api/v1/histogram", P(["zone"], a, b, [("by", by), ("timezone", z)]))
            if fail(r, r.path, True):
                continue
            j = js(r)
            e = sel(w, ["zone"], a, b)
            tot = sum(x["total"] for x in j["buckets"])
            ok = tot == len(e)
            note = "sum %d of %d" % (tot, len(e))
            st = sorted(unrfc(x["t"]) for x in j["buckets"])
            exp = {}
            for x in e:
                i = bisect.bisect_right(st, x.ts) - 1
                exp[i] = exp.get(i, 0) + 1
            got = {i: x["total"] for i, x in enumerate(sorted(j["buckets"], key=lambda x: x["t"]))}
            if exp != got:
                ok = False
                note += (
                    ", buckets do not have what lies between them: %s"
                    % [(j["buckets"][i]["t"], exp.get(i), got.get(i)) for i in set(exp) | set(got) if exp.get(i) != got.get(i)][:3]
                )
            if by in ("1d", "1w") and z[0] not in "+-":
                zi = zoneinfo.ZoneInfo(z)
                bad = [
                    rfc(t)
                    for t in st
                    if (lambda d: (d.hour, d.minute, d.second) != (0, 0, 0) or (by == "1w" and d.weekday()))(
                        datetime.datetime.fromtimestamp(t // S, zi)
                    )
                ]
                if bad:
                    ok = False
                    note += ", no midnight (monday) of the zone: %s" % bad[:2]
            # each bucket is as long as it says (a record must not be in one that begins more than its length before)
            if by in ("1h", "1m", "15m", "6h", "12h"):
                n = bucket_ns(by)
                late = [x for x in e if x.ts - st[bisect.bisect_right(st, x.ts) - 1] >= n + (H if n > H else 0)]
                if late:
                    ok = False
                    note += ", a record is %d s behind the begin of its bucket" % (
                        (late[0].ts - st[bisect.bisect_right(st, late[0].ts) - 1]) // S
                    )
            settle(r.path, j["complete"], ok, note, True, j["problems"])
    for nb in (1, 2, 5, 17, 120, 1000, 100000):
        for a, b in ((None, None), (at(2026, 10, 24, 21, 30, 1), at(2026, 10, 26, 1, 0, 1)), (at(2026, 10, 25), at(2026, 10, 25) + 1)):
            r = q.get("/api/v1/histogram", P(["zone"], a, b, [("buckets", nb)]))
            if fail(r, r.path, True):
                continue
            j = js(r)
            e = sel(w, ["zone"], a, b)
            tot = sum(x["total"] for x in j["buckets"])
            check(
                tot == len(e) and len(j["buckets"]) <= nb + 1 and j["complete"],
                r.path,
                "sum %d of %d, %d buckets by %s" % (tot, len(e), len(j["buckets"]), j["by"]),
            )
    q.stop()


def ph_numbers(w):
    """metric queries over values"""
    q = w.serve()
    A = w.ing["a"]
    B = w.ing["b"]
    t0 = T0 - 4 * D
    A.send(
        [
            Rec(t0 + random.randrange(20 * MIN), random.choice(LV), "num", status=i % 3, v=random.randrange(1000), took="%dms" % (i % 50))
            for i in range(400)
        ]
    )
    A.flush()
    B.send([Rec(t0 + random.randrange(20 * MIN), random.choice(LV), "num", status=i % 3, v=random.randrange(1000)) for i in range(100)])
    A.send([Rec(t0 + k * MIN + d, "info", "num", status=1, v=5) for k in range(20) for d in (0, -1, 1)])

    def ask(query, fn, by=None, off=0, rng=5 * MIN):
        r = q.get("/loki/api/v1/query_range", [("query", query), ("start", t0), ("end", t0 + 25 * MIN), ("step", 60)])
        if fail(r, r.path, True):
            return
        j = js(r)
        got = {
            (m["metric"].get(by, "") if by else "", round(float(v[0]) * S)): float(v[1]) for m in j["data"]["result"] for v in m["values"]
        }
        exp = {}
        for t in range(t0, t0 + 25 * MIN + 1, MIN):
            xs = sel(w, ["num"], t - off - rng, t - off)
            for k in {str(x.f["status"]) for x in xs} if by else {""}:
                ys = [x for x in xs if not by or str(x.f["status"]) == k]
                if ys:
                    v = fn(ys)
                    if v is not None:
                        exp[(k, t)] = v
        bad = [
            (k, exp.get(k), got.get(k))
            for k in sorted(set(exp) | set(got))
            if k not in exp or k not in got or abs(exp[k] - got[k]) > 1e-6 * max(1, abs(exp[k]))
        ]
        settle(
            r.path,
            not j.get("warnings"),
            not bad,
            "%d points%s" % (len(exp), " %d differ (expected, got) " % len(bad) + str(bad[:3]) if bad else ""),
            True,
        )

    N = '{service_name="num"}'
    u = N + " | unwrap v [5m]"
    for by in (None, "status"):
        g = " by (%s)" % by if by else ""
        ask("sum%s (count_over_time(%s[5m]))" % (g, N), len, by)
        ask("sum%s (rate(%s[5m]))" % (g, N), lambda y: len(y) / 300, by)
        ask("sum%s (sum_over_time(%s))" % (g, u), lambda y: sum(x.f["v"] for x in y), by)
        ask("max_over_time(%s)%s" % (u, g or " by ()"), lambda y: max(x.f["v"] for x in y), by)
        ask("min_over_time(%s)%s" % (u, g or " by ()"), lambda y: min(x.f["v"] for x in y), by)
        ask("avg_over_time(%s)%s" % (u, g or " by ()"), lambda y: sum(x.f["v"] for x in y) / len(y), by)
        ask("sum%s (count_over_time(%s[5m] offset 3m))" % (g, N), len, by, 3 * MIN)
        ask("sum%s (bytes_over_time(%s[5m]))" % (g, N), lambda y: sum(len(x.msg) for x in y), by)
        ask("sum%s (count_over_time(%s[1m]))" % (g, N), len, by, 0, MIN)
        ask("sum%s (count_over_time(%s[90s]))" % (g, N), len, by, 0, 90 * S)
        ask("sum%s (count_over_time(%s[1500ms]))" % (g, N), len, by, 0, 1500 * 10**6)
        ask("sum%s (count_over_time(%s[1h]))" % (g, N), len, by, 0, H)
        ask(
            'sum%s (count_over_time(%s |= "basket" [5m]))' % (g, N), lambda y: len([x for x in y if "basket" in x.msg]) or None, by
        ) if not by else None
        ask(
            "sum%s (sum_over_time(%s | unwrap duration(took) [5m]))" % (g, N),
            lambda y: sum(float(x.f["took"][:-2]) / 1000 for x in y if "took" in x.f) if any("took" in x.f for x in y) else None,
            by,
        ) if not by else None
        ask("sum%s (first_over_time(%s))" % (g, u), lambda y: min(y, key=lambda x: x.ts).f["v"], by) if not by else None
        ask("2 * sum%s (count_over_time(%s[5m])) / 4" % (g, N), lambda y: len(y) / 2, by)
        ask("sum%s (count_over_time(%s[5m])) > 130" % (g, N), lambda y: len(y) if len(y) > 130 else None, by)
        ask(
            "count_over_time(%s[5m])" % N if not by else 'sum by (status) (count_over_time(%s | status != "2" [5m]))' % N,
            (lambda y: len(y)) if not by else (lambda y: len(y) if y[0].f["status"] != 2 else None),
            by,
        )
    q.stop()


def ph_drop(w):
    """a day is dropped while it is read, and compacted ones too"""
    q = w.serve()
    A, B = w.ing["a"], w.ing["b"]
    day = T0 // D * D - 9 * D
    for k in range(6):
        for ig in (A, B):
            ig.send(
                [
                    Rec(day + k % 3 * D + random.randrange(D), random.choice(LV), sv, status=random.choice([200, 502]))
                    for sv in ("dropped", "kept")
                    for _ in range(60)
                ]
            )
        A.flush()
        B.flush()
    A.send([Rec(day + D + random.randrange(D), "info", "dropped", status=1) for _ in range(9)])
    mid = (day + D, day + 2 * D)
    gone = [r for r in w.ledger if r.svc == "dropped" and mid[0] <= r.ts < mid[1]]
    gu = {r.uid for r in gone}
    res = []
    stop = [False]

    def reader(i):
        while not stop[0]:
            f = random.choice(["rec", "count", "hist", "comp"])
            if f == "rec":
                r = q.get("/api/v1/records", [("service", "dropped"), ("form", "events"), ("limit", 0)])
            elif f == "count":
                r = q.get("/api/v1/count", [("service", "dropped")])
            elif f == "hist":
                r = q.get("/api/v1/histogram", [("service", "dropped"), ("by", "1d")])
            else:
                r = q.get("/api/v1/records", [("service", "kept"), ("form", "events"), ("limit", 0)])
            res.append((f, r))
            time.sleep(0.15)

    th = [threading.Thread(target=reader, args=(i,)) for i in range(3)]
    for t in th:
        t.start()

    def rt(*a):
        return subprocess.run([BIN + "/retention"] + list(a) + ["--store", "dir:" + w.store], capture_output=True, text=True)

    rt("compact")
    d = time.strftime("%Y-%m-%d", time.gmtime(mid[0] // S))
    p = rt("drop", "dropped", "--day", d)
    hs = re.search(r"plan (\w+)", p.stdout + p.stderr)
    p = rt("drop", "dropped", "--day", d, "--confirm", hs.group(1)) if hs else p
    stop[0] = True
    for t in th:
        t.join()
    if p.returncode:
        odd.append("retention drop: %s %s" % (p.returncode, (p.stdout + p.stderr)[-300:]))
    al = sel(w, ["dropped"], None, None)
    kp = len(sel(w, ["kept"], None, None))
    n1 = len(al)
    n2 = n1 - len(gone)
    for f, r in res:
        w_ = r.path + " (beside retention drop and compact)"
        if fail(r, w_, True):
            continue
        if f in ("rec", "comp"):
            g, end, pr = parse_lines(r, "events")
            g = [x["uid"] for x in g]
            full = n1 if f == "rec" else kp
            rest = n2 if f == "rec" else kp
            nd = len([x for x in g if x in gu]) if f == "rec" else 0
            ok = len(g) == len(set(g)) and (
                len(g) == full or len(g) == rest or (f == "rec" and len(g) - nd == rest and ("expire" in r.body.decode()))
            )
            settle(
                w_,
                bool(end and end["complete"]),
                ok,
                "%d records, all are %d, without the day %d" % (len(g), full, rest),
                False,
                end and end["problems"],
            )
        else:
            j = js(r)
            n = j["records"] if f == "count" else sum(x["total"] for x in j["buckets"])
            ok = n in (n1, n2) or (n2 < n < n1 and "expire" in r.body.decode())
            settle(w_, j["complete"], ok, "%d, all are %d, without the day %d" % (n, n1, n2), False, j["problems"])
    with w.lock:
        w.ledger[:] = [r for r in w.ledger if r.uid not in gu]
    time.sleep(3)
    for qq in (q, w.serve()):
        for a, b in ((None, None), mid, (day, day + 3 * D), (day + D - 1, day + D + 1)):
            for svcs in (["dropped"], ["kept"], ["*"]):
                c_count(qq, svcs, a, b)
                c_hist(qq, svcs, a, b, "1h")
                c_rec(qq, svcs, a, b, limit=0)
                c_facets(qq, svcs, a, b)
                c_loki(qq, svcs, a or day - D, b or FUT, limit=5000)
        c_services(qq)
        c_days(qq, ["dropped", "kept"])
        c_days(qq, ["*"])
        c_tail(qq, ["dropped"], frm=day)
        c_series(qq, ["dropped"], *mid)
        c_vol(qq, ["kept"], *mid)
    rt("compact")
    for x in range(2):
        c_count(q, ["kept"], None, None)
        c_rec(q, ["kept"], day, day + 3 * D, limit=0)
        c_hist(q, ["kept"], day, day + 3 * D, "1m")
    q.stop()


def ph_tmp(w):
    """a serve whose temporary directory is full, tiny, read-only or missing, with 60 MiB of unflushed records"""
    A = Ingester(w, "t", ["--flush-size", "1GiB"])
    w.ing["t"] = A
    base = NOW - 5 * MIN
    for i in range(17):
        A.send(
            [
                Rec(
                    base - i * H + j * 100000000,
                    random.choice(LV),
                    "tmp-%d" % (i % 3),
                    status=random.choice([200, 502]),
                    pad=base64.b64encode(os.urandom(3000)).decode(),
                )
                for j in range(1000)
            ]
        )
    dirs = []
    ro = w.dir + "/ro"
    os.makedirs(ro)
    dirs.append(("missing", w.dir + "/no/where", None))
    tm = w.dir + "/tiny"
    os.makedirs(tm)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tm], capture_output=True).returncode == 0
    if mounted:
        dirs.append(("1 MiB", tm, None))
    okd = w.dir + "/ok"
    os.makedirs(okd)
    dirs.append(("good", okd, None))
    dirs.append(("ulimit -f", okd, 1024 * 1024))
    import resource

    try:
        for name, d, lim in dirs:
            w.n += 1
            log = os.path.join(w.dir, "serve-t%d.log" % w.n)
            p = spawn(
                [BIN + "/logquery", "serve", "--store", "dir:" + w.store, "--listen", "127.0.0.1:0"],
                log,
                {"TMPDIR": d},
                preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (lim, lim))) if lim else None,
            )
            try:
                m = waitlog(log, "listening")
            except Exception as e:
                out("refused", "serve with a TMPDIR that is " + name, "does not start: " + str(e)[-200:])
                continue
            q = Serve(w, p, m["url"].split("//")[1], log)
            q.headers = {}
            good = name == "good"
            print(
                "# TMPDIR: %s; %s" % (name, "warned" if "TMPDIR" in open(log).read() or "temporary" in open(log).read() else "not warned")
            )
            c_count(q, ["tmp-*"], None, None, whole=good)
            c_rec(q, ["tmp-*"], None, None, limit=0, whole=good)
            c_rec(q, ["tmp-*"], None, None, limit=0, form="events", whole=good)
            c_rec(q, ["tmp-*"], None, None, limit=50000, whole=good)
            c_rec(q, ["tmp-*"], None, None, limit=3, whole=good)
            c_rec(q, ["tmp-*"], None, None, first=3, whole=good)
            c_rec(q, ["tmp-*"], None, None, limit=0, order="desc", whole=good)
            c_rec(q, ["tmp-1"], None, None, limit=10000, order="desc", whole=good)
            c_hist(q, ["tmp-*"], None, None, "1h", whole=good)
            c_hist(q, ["*"], NOW - 30 * H, NOW + H, "1h", "service", whole=good)
            c_facets(q, ["tmp-*"], None, None, whole=good)
            c_loki(q, ["tmp-*"], NOW - 30 * H, NOW, limit=5000, whole=good, grafana=True, rest="| drop pad")
            c_loki(q, ["tmp-*"], NOW - 30 * H, NOW, limit=5000, whole=good, rest="| drop pad", direction="forward")
            c_metric(q, ["tmp-*"], NOW - 60 * MIN, NOW + MIN, "5m", 300, whole=good, grafana=True)
            c_metric(q, ["tmp-*"], NOW - 60 * MIN, NOW + MIN, "5m", 300, by="status", whole=good)
            c_instant(q, ["tmp-*"], NOW + MIN, "1d", whole=good)
            c_tail(q, ["tmp-*"], n=10000, whole=good)
            c_tail(q, ["tmp-*"], frm=NOW - 30 * H, whole=good)
            c_services(q, whole=good)
            c_days(q, ["tmp-*"], whole=good)
            c_series(q, ["tmp-*"], NOW - 30 * H, NOW, whole=good, hdr=GRAF)
            c_vol(q, ["tmp-*"], NOW - 30 * H, NOW, whole=good, hdr=GRAF)
            c_count(q, ["tmp-*"], None, None, [("text", "basket")], lambda r: "basket" in r.msg, whole=good)
            th = [
                threading.Thread(
                    target=lambda i=i: nogaps(
                        "tmp",
                        q,
                        lambda: (
                            c_rec(q, ["tmp-*"], None, None, limit=0, whole=False)
                            if i % 2
                            else c_hist(q, ["tmp-*"], NOW - 20 * H, NOW + i, "1h", whole=False),
                            c_count(q, ["tmp-*"], NOW - random.randrange(20) * H, None, whole=False),
                        ),
                    )
                )
                for i in range(6)
            ]
            for t in th:
                t.start()
            for t in th:
                t.join()
            m = q.rss()
            check(
                m < 700 and p.poll() is None,
                "memory of serve",
                "%d MiB at most, process %s" % (m, "lives" if p.poll() is None else "has ended: " + open(log).read()[-300:]),
            )
            q.stop()
            for n in (okd,) if not mounted else (okd, tm):
                if os.listdir(n):
                    out("WRONG", "temporary files", "left behind in TMPDIR: %s" % os.listdir(n)[:3])
    finally:
        if mounted:
            subprocess.run(["umount", "-l", tm])
    A.flush()
    A.term()


def ph_load(w):
    """a short deadline, clients that go away, and everything at once"""
    A = w.ing["a"]
    for h in range(6):
        A.send(
            [
                Rec(
                    T0 - 7 * D + h * H + i * 400 * 1000 * 1000,
                    random.choice(LV),
                    "load",
                    status=random.choice([200, 502]),
                    pad="%064x" % random.getrandbits(256),
                )
                for i in range(8000)
            ]
        )
    A.flush()
    q = w.serve(["--timeout", "300ms"])
    q2 = w.serve()
    heavy = [
        (
            "where",
            'msg matches "(a|b|c|d|e)*[q-z]+(b|asket)+.*" and pad matches "(0|1|2)+.*f.*e.*d.*c" '
            "and len(filter(0..2000, # % 7 == status)) > 0",
        )
    ]
    for k in ("count", "histogram", "records", "facets"):
        for ex in (heavy, [("expr", "(.*b){3}.*(a|s)+k")], [("text", "nowhere"), ("fold", 1)]):
            r = q.get(
                "/api/v1/" + k,
                [("service", "load"), *ex] + ([("sample", 0)] if k == "facets" else [("limit", 0)] if k == "records" else []),
            )
            if fail(r, r.path, False):
                continue
            if k == "records":
                out(
                    "right" if r.whole and r.trailers.get("blobtail-complete") == "1" else "incomplete",
                    r.path[:80],
                    "%.1f s, %d lines %s" % (r.t, r.body.count(b"\n"), r.err),
                ) if r.t < 4 else out("WRONG", r.path, "%.1f s beyond a deadline of 0.3 s" % r.t)
                continue
            out("right" if js(r)["complete"] and r.t < 4 else "incomplete" if r.t < 4 else "WRONG", r.path[:80], "%.1f s" % r.t)
    for ex, pr in ((heavy, None), ([], None)):
        for k in (1, 2):
            r = q.get(
                "/api/v1/records",
                [("service", "load"), ("limit", 0), ("form", "events")]
                + ([("where", "len(filter(0..3000, # % 7 == status)) >= 0")] if ex else []),
            )
            if fail(r, r.path, False):
                continue
            g, end, _ = parse_lines(r, "events")
            c = r.whole and end and end["complete"]
            settle(r.path[:120], c, len(g) == 48000, "%d of 48000 in %.1f s" % (len(g), r.t), False, (end or {}).get("problems") or r.err)
    r = q.get(
        "/loki/api/v1/query_range",
        [
            ("query", 'sum(count_over_time({service_name="load"} |~ "(.*b){3}.*(a|s)+k" [1h]))'),
            ("start", T0 - 8 * D),
            ("end", T0),
            ("step", 60),
        ],
    )
    fail(r, r.path, False) or out("right", r.path, "%.1f s" % r.t)
    # clients that go away
    for i in range(60):
        k = random.choice(
            [
                "/api/v1/records?service=load&limit=0",
                "/api/v1/records?service=*&limit=0&form=events",
                "/api/v1/tail?service=*&from=2026-01-01",
                "/loki/api/v1/query_range?query=%7B%7D&limit=5000&start=" + str(MON),
                "/api/v1/facets?service=*&sample=0",
            ]
        )
        try:
            s = socket.create_connection(tuple(q2.addr.split(":")), timeout=5)
            s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (k, q2.addr)).encode())
            if i % 2:
                s.recv(1000)
            s.close()
        except Exception:
            pass
    t = time.time()
    fl = -1
    while time.time() < t + 12:
        m = q2.get("/metrics").body.decode()
        fl = [
            float(re.search(r"^%s (\S+)" % x, m, re.M).group(1))
            for x in ("blobtail_serve_queries", "blobtail_serve_tails", "blobtail_serve_queries_waiting")
        ]
        if fl == [0, 0, 0]:
            break
        time.sleep(0.3)
    check(fl == [0, 0, 0], "/metrics after 60 clients that went away", "queries, tails, waiting: %s" % fl)

    # everything at once
    def one(i):
        if i % 4 == 0:
            c_rec(q2, ["*"], None, None, limit=0, form=random.choice(["lines", "events"]))
        elif i % 4 == 1:
            c_rec(q2, ["load"], None, None, limit=random.choice([40000, 100000]))
        elif i % 4 == 2:
            c_hist(q2, ["*"], None, None, "1h", "service", [("text", "basket")], lambda r: "basket" in r.msg)
        else:
            c_rec(
                q2, ["load"], T0 - 7 * D + i * MIN, T0, [("where", "status == 502")], lambda r: r.f["status"] == 502, limit=0, order="desc"
            )

    th = [threading.Thread(target=lambda i=i: nogaps("load", q2, lambda: one(i))) for i in range(16)]
    for t in th:
        t.start()
    for t in th:
        t.join()
    m = q2.rss()
    check(0 < m < 700, "memory of serve", "%d MiB at most" % m)
    q.stop()
    q2.stop()


def ph_ages(w):
    """records of 1969 and before, at 0, and a day ahead"""
    q = w.serve()
    A = w.ing["a"]
    ok = []
    for half in (0, 1):
        for ts in (
            0,
            -1,
            1,
            -S,
            -H,
            -D,
            -D - 1,
            -25567 * D,
            -100000 * D,
            S - 1,
            NOW + 23 * H,
            86400 * S * 1000,
            -9223372036 * S + S * 100 if False else -5 * D - H // 2,
        ):
            r = Rec(ts + half * 3, random.choice(LV), "ages", status=5)
            d = r.wire()
            days, rest = divmod(r.ts, D)
            dt = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=days)
            d["time"] = dt.strftime("%Y-%m-%d").rjust(10, "0") + "T%02d:%02d:%02d.%09dZ" % (
                rest // H,
                rest // MIN % 60,
                rest // S % 60,
                rest % S,
            )
            x = http(A.addr, "/ingest", method="POST", body=json.dumps(d).encode(), headers={"Content-Type": "application/x-ndjson"})
            j = js(x)
            if x.status == 200 and j["accepted"] == 1:
                w.ledger.append(r)
                ok.append(r)
            else:
                odd.append("ingest refuses %s: %s" % (d["time"], x.body[:150]))
        if not half:
            A.flush()
    n = len(ok)

    def cnt(p, k):
        r = q.get("/api/v1/count", [("service", "ages")] + p)
        if r.status >= 500 or r.status == 0:
            out("WRONG", r.path, "%d %s %s" % (r.status, r.body[:150], r.err))
            return
        if r.status >= 400:
            out("refused", r.path, "%d %s" % (r.status, r.body[:200]))
            return
        j = js(r)
        settle(r.path, j["complete"], j["records"] == k, "expected %d, got %d" % (k, j["records"]), True, j["problems"])

    cnt([], n)
    c_rec(q, ["ages"], None, None, limit=0)
    c_rec(q, ["ages"], None, None, first=3)
    c_rec(q, ["ages"], None, None, limit=3)
    c_rec(q, ["ages"], None, None, limit=0, order="desc")
    c_rec(q, ["ages"], None, None, limit=0, form="events")
    for a, b in (
        ("1969-12-31", "1970-01-02"),
        ("1970-01-01", None),
        (None, "1970-01-01"),
        ("1900-01-01", "1969-12-31T23:59:59.999999999Z"),
        ("1960-01-01", "1970-01-01T00:00:00.000000001Z"),
        ("1696-01-01", "1970-01-01"),
        ("1600-01-01", "2026-01-01"),
    ):
        dn = lambda t: datetime.datetime.fromisoformat(t[:19].replace("Z", "")) - datetime.datetime(1970, 1, 1)
        ns = lambda t: None if t is None else (dn(t).days * 86400 + dn(t).seconds) * S + (int(t[20:-1]) if len(t) > 20 else 0)
        p = [x for x in (("from", a), ("to", b)) if x[1]]
        cnt(p, len([r for r in ok if inwin(r, ns(a), ns(b))]))
        r = q.get("/api/v1/histogram", [("service", "ages"), ("by", "1d")] + p)
        if not fail(r, r.path, False):
            j = js(r)
            tot = sum(x["total"] for x in j["buckets"])
            k = len([r for r in ok if inwin(r, ns(a), ns(b))])
            settle(r.path, j["complete"], tot == k, "sum %d, expected %d, buckets %s" % (tot, k, [x["t"] for x in j["buckets"]][:4]), True)
        r = q.get("/api/v1/records", [("service", "ages"), ("limit", 0)] + p)
        if not fail(r, r.path, False):
            k = len([r for r in ok if inwin(r, ns(a), ns(b))])
            check(r.body.count(b"\n") == k and r.whole, r.path, "%d lines, expected %d" % (r.body.count(b"\n"), k))
    r = q.get("/api/v1/records", [("service", "ages"), ("form", "events"), ("limit", 0)])
    ids = [json.loads(l)["record"]["id"] for l in r.body.decode().splitlines() if '"record"' in l]
    for x in ids:
        r = q.get("/api/v1/records/ages/" + x)
        check(r.status == 200 and js(r)["id"] == x, r.path, "%d %s" % (r.status, r.body[:120]))
    c_tail(q, ["ages"], n=100)
    r = q.get("/api/v1/days", [("service", "ages")])
    j = js(r)
    tot = sum(d["records"] + d["unflushed"] for d in j["days"])
    check(tot == n, r.path, "%d of %d" % (tot, n))
    r = q.get("/api/v1/services")
    s = [x for x in js(r)["services"] if x["name"] == "ages"][0]
    check(s["records"] + s["unflushed"] == n, r.path, "ages %d of %d, %s to %s" % (s["records"] + s["unflushed"], n, s["first"], s["last"]))
    for a, b in ((-D * 2, D * 2), (-30000 * D, 1000 * D)):
        c_loki(q, ["ages"], a, b, limit=1000)
        c_loki(q, ["ages"], a, b, limit=1000, direction="forward", grafana=True)
    r = q.get(
        "/loki/api/v1/query_range",
        [("query", 'sum(count_over_time({service_name="ages"}[1h]))'), ("start", -2 * H), ("end", 2 * H), ("step", 3600)],
    )
    fail(r, r.path, False) or out("right", r.path, str(r.body[:200]))
    q.stop()


def ph_names(w):
    """fields and levels whose names collide with labels"""
    q = w.serve()
    q5 = w.serve(["--label", "namespace", "--label", "status"])
    A = w.ing["a"]
    t0 = T0 - 3 * D
    lv = ["audit", "WARNING", "Err", "fatal", "notice", "", "verbose", "30", "info ", None, "TRACE", "ünk"]
    recs = []
    for half in (0, 1):
        for i in range(60):
            r = Rec(
                t0 + i * 10 * S + half,
                "",
                random.choice(["col", "col2"]),
                status=random.choice([200, 500]),
                namespace=random.choice(["prod", "dev", "a b", ""]),
                service_name="other",
                detected_level="nope",
                level_extracted="z",
                __error__="E",
                __name__="x",
                msg_="m",
                container="c%d" % (i % 3),
            )
            d = r.wire()
            l = lv[i % len(lv)]
            d["level"] = l
            if l is None:
                del d["level"]
            x = http(A.addr, "/ingest", method="POST", body=json.dumps(d).encode(), headers={"Content-Type": "application/x-ndjson"})
            if x.status != 200 or js(x)["accepted"] != 1:
                odd.append("ingest %s %s" % (d, x.body[:100]))
                continue
            w.ledger.append(r)
            recs.append(r)
        if not half:
            A.flush()
    # the levels as stored
    r = q.get("/api/v1/records", [("service", "col*"), ("limit", 0)])
    lines = {json.loads(l)["uid"]: json.loads(l) for l in r.body.decode().splitlines()}
    for x in recs:
        x.level = lines[x.uid]["level"] if x.uid in lines else x.level
    check(len(lines) == len(recs), r.path, "%d of %d" % (len(lines), len(recs)))
    from collections import Counter

    st = Counter(l["level"] for l in lines.values())
    print("# levels as stored", dict(st))
    oth = sum(v for k, v in st.items() if k not in LV)
    for lo in LV + ["other"]:
        k = st.get(lo, 0) if lo != "other" else oth
        for p in ([("level", lo)], [("level", lo), ("text", "evt")], [("level", lo), ("live", "auto")]):
            r = q.get("/api/v1/count", [("service", "col*")] + p)
            fail(r, r.path, True) or check(js(r)["records"] == k and js(r)["complete"], r.path, "%d, expected %d" % (js(r)["records"], k))
    win = [("start", t0 - H), ("end", t0 + H), ("limit", 1000)]

    def lines_of(qq, x):
        r = qq.get("/loki/api/v1/query_range", [("query", x)] + win)
        if r.status != 200:
            return r, None
        return r, sum(len(s["values"]) for s in js(r)["data"]["result"])

    def count_of(qq, x):
        r = qq.get("/loki/api/v1/query", [("query", "sum(count_over_time(%s[3h]))" % x), ("time", t0 + H)])
        if r.status != 200:
            return r, None
        d = js(r)["data"]["result"]
        return r, int(float(d[0]["value"][1])) if d else 0

    S_ = 'service_name=~"col.*"'
    from collections import Counter

    def expct(f):
        return sum(1 for l in lines.values() if f(l))

    tests = [
        ("{%s}" % S_, lambda l: True),
        ('{service_name="other"}', lambda l: False),
        ('{service_name="col"}', lambda l: l["service"] == "col"),
        ('{%s} | service_name="other"' % S_, None),
        ('{%s,level="audit"}' % S_, None),
        ('{%s,level=~"audit|warn"}' % S_, None),
        ('{%s,level=""}' % S_, None),
        ('{%s,level!=""}' % S_, None),
        ('{%s,level=~".*"}' % S_, lambda l: True),
        ('{%s,level=~".+"}' % S_, None),
        ('{%s,level!="warn"}' % S_, lambda l: l["level"] != "warn"),
        ('{%s,level="warn"}' % S_, lambda l: l["level"] == "warn"),
        ('{%s,level!~"warn|error"}' % S_, lambda l: l["level"] not in ("warn", "error")),
        ('{%s,level="critical"}' % S_, lambda l: l["level"] == "critical"),
        ('{%s,level="unknown"}' % S_, None),
        ('{%s,level="other"}' % S_, None),
        ('{%s} | level="warn"' % S_, lambda l: l["level"] == "warn"),
        ('{%s} | level="audit"' % S_, None),
        ('{%s} | detected_level="nope"' % S_, None),
        ('{%s} | detected_level="warn"' % S_, lambda l: l["level"] == "warn"),
        ('{%s,namespace="prod"}' % S_, lambda l: l["namespace"] == "prod"),
        ('{%s,namespace=""}' % S_, lambda l: l["namespace"] == ""),
        ('{%s,namespace!="prod"}' % S_, lambda l: l["namespace"] != "prod"),
        ('{%s,namespace=~"a.b|dev"}' % S_, lambda l: l["namespace"] in ("a b", "dev")),
        ('{%s,status="500"}' % S_, lambda l: l["status"] == 500),
        ('{%s} | namespace="prod" | status=500' % S_, lambda l: l["namespace"] == "prod" and l["status"] == 500),
        ('{%s,nosuch=""}' % S_, lambda l: True),
        ('{%s,nosuch!="x"}' % S_, lambda l: True),
        ('{%s,nosuch="x"}' % S_, lambda l: False),
        ('{service_name!=""} | container="c1"', lambda l: l["container"] == "c1"),
        ('{namespace="dev"}', lambda l: l["namespace"] == "dev"),
        ('{%s} | __error__="E"' % S_, None),
        ('{%s} | __error__!=""' % S_, None),
    ]
    for x, f in tests:
        for qq in (q, q5):
            r, a = lines_of(qq, x)
            r2, b = count_of(qq, x)
            r3 = qq.get("/api/v1/count", [("logql", x), ("from", rfc(t0 - 2 * H)), ("to", rfc(t0 + H))])
            c = js(r3).get("records") if r3.status == 200 else 0 if r3.status == 404 else None
            k = expct(f) if f else None
            if None in (a, b, c):
                out(
                    "refused" if f is None else "WRONG",
                    x,
                    "lines %s, count %s, own count %s: %s %s"
                    % (a, b, c, r.status, (r if a is None else r2 if b is None else r3).body[:160]),
                )
                continue
            check(
                a == b == c and (k is None or a == k),
                "/loki/api/v1/query_range, query, /api/v1/count?logql=" + x,
                "%slines %d, count %d, own count %d, expected %s" % ("--label; " if qq is q5 else "", a, b, c, k if f else "the same"),
            )
    for by in ("level", "detected_level", "service_name", "namespace", "status", "container", "service_name,level"):
        for qq in (q, q5):
            d = []
            for flt in ("", '|= "evt"'):
                r = qq.get(
                    "/loki/api/v1/query", [("query", "sum by (%s)(count_over_time({%s} %s [3h]))" % (by, S_, flt)), ("time", t0 + H)]
                )
                if r.status != 200:
                    d.append((r.status, r.body[:90]))
                    continue
                d.append({tuple(sorted(m["metric"].items())): float(m["value"][1]) for m in js(r)["data"]["result"]})
            tot = [sum(x.values()) if isinstance(x, dict) else x for x in d]
            check(
                d[0] == d[1] and tot[0] == len(lines),
                "/loki/api/v1/query?query=sum by (%s)(count_over_time(...)) by index and by reading" % by,
                "sums %s of %d%s" % (tot, len(lines), "" if d[0] == d[1] else " differ: %s %s" % (str(d[0])[:200], str(d[1])[:200])),
            )
    for lb, ex in (
        ("namespace", {"prod", "dev", "a b"}),
        ("status", {"200", "500"}),
        ("level", set(st) - {""}),
        ("service_name", {"col", "col2"}),
        ("detected_level", set(st) - {""}),
    ):
        for qq in (q, q5):
            if qq is q and lb in ("namespace", "status"):
                continue
            r = qq.get("/loki/api/v1/label/%s/values" % lb, [("start", t0 - H), ("end", t0 + H), ("query", "{%s}" % S_)])
            d = set(js(r).get("data") or []) if r.status == 200 else set()
            ex2 = ex if lb not in ("level", "detected_level") else {x for x in ex if x in LV}
            check(ex2 <= d, r.path, "%d, missing %s, has %s" % (r.status, sorted(ex2 - d), sorted(d)[:12]))
    r = q5.get("/loki/api/v1/series", [("match[]", "{%s}" % S_), ("start", t0 - H), ("end", t0 + H)])
    got = {tuple(sorted((k, v) for k, v in x.items() if v)) for x in js(r)["data"]}
    ex = {
        tuple(
            sorted(
                [("service_name", l["service"])]
                + ([("namespace", l["namespace"])] if l["namespace"] else [])
                + [("status", str(l["status"]))]
            )
        )
        for l in lines.values()
    }
    check(
        ex <= got, r.path + " --label", "expected %d, got %d, missing %s, e.g. %s" % (len(ex), len(got), list(ex - got)[:2], list(got)[:1])
    )
    for tl in ("namespace", "status", "level", "service_name"):
        r = q5.get("/loki/api/v1/index/volume", [("query", "{%s}" % S_), ("targetLabels", tl), ("start", t0 - H), ("end", t0 + H)])
        out("refused" if r.status >= 400 else "right", "/loki/api/v1/index/volume?targetLabels=" + tl, "%d %s" % (r.status, r.body[:200]))
    q.stop()
    q5.stop()


def ph_ident(w):
    """the address of an ingester that is gone is taken by others; logs and tables go away"""
    q = w.serve()
    A, B = w.ing["a"], w.ing["b"]
    lo, hi = NOW - H, NOW + H
    A.flush()
    B.flush()
    A.send(mk("ident", "now", 20))
    B.send(mk("ident", "now", 30))

    def ask(qq, whole=False):
        for svcs in (["ident"], ["*"]):
            c_count(qq, svcs, lo, hi, whole=whole)
            c_hist(qq, svcs, lo, hi, "1m", whole=whole)
            c_rec(qq, svcs, lo, hi, limit=0, whole=whole)
            c_rec(qq, svcs, lo, hi, limit=5, form="events", whole=whole)
            c_loki(qq, svcs, lo, hi, limit=5000, whole=whole, grafana=True)
            c_loki(qq, svcs, lo, hi, limit=10, whole=whole)
            c_metric(qq, svcs, NOW - 10 * MIN, NOW + MIN, "5m", 60, whole=whole, grafana=True)
            c_tail(qq, svcs, n=1000, whole=whole)
            c_facets(qq, svcs, lo, hi, whole=whole)
            c_days(qq, svcs, whole=whole)
            c_vol(qq, svcs, lo, hi, whole=whole, hdr=GRAF)
        c_services(qq, whole=whole)

    print("# all there")
    ask(q, True)
    pb = B.addr
    B.kill9()
    print("# A stands at the address of B too")
    A.term()
    A.p = spawn(
        [BIN + "/ingest", "--store", "dir:" + w.store, "--wal", A.wal, "--listen", pb, "--admin", "127.0.0.1:0", "--flush-max-age", "20m"],
        A.log + "2",
    )
    m = waitlog(A.log + "2", "ready")
    A.addr, A.admin = m["listen"], m["admin"]
    time.sleep(0.5)
    A.send(mk("ident", "now", 5))
    ask(q)
    A.term()
    print("# an ingester of another store stands there")
    w2 = World(w.dir.split("/")[-1] + "-other")
    X = spawn(
        [BIN + "/ingest", "--store", "dir:" + w2.store, "--wal", w2.dir + "/wal", "--listen", pb, "--admin", "127.0.0.1:0"],
        w2.dir + "/i.log",
    )
    waitlog(w2.dir + "/i.log", "ready")
    http(pb, "/ingest/ident", method="POST", body=b"of another store")
    A.start()
    A.send(mk("ident", "now", 5))
    ask(q)
    qx = w.serve(["--live-url", "http://" + pb])
    print("# the live URL is of another store")
    ask(qx)
    qx.stop()
    X.kill()
    X.wait()
    print("# another program stands there")
    hs = subprocess.Popen(
        [sys.executable, "-m", "http.server", pb.split(":")[1], "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=w2.dir,
    )
    procs.append(hs)
    time.sleep(1)
    ask(q)
    hs.kill()
    hs.wait()
    print("# the live URL is A, B is away; A hangs")
    qa = w.serve(["--live-url", "http://" + A.addr])
    ask(qa)
    A.stop()
    t = time.time()
    c_count(qa, ["ident"], lo, hi, whole=False)
    print("# 1 question to a hung one: %.1f s" % (time.time() - t))
    A.cont()
    qa.stop()
    print("# live off")
    qo = w.serve(["--live-url", "off"])
    for p in ("count", "histogram", "records?form=events", "facets", "services", "days", "blobs", "tail?once=1"):
        r = qo.get("/api/v1/" + p + ("&" if "?" in p else "?") + ("service=ident" if p != "services" else ""))
        b = r.body.decode()
        ok = r.status >= 400 or '"warnings":["' in b or '"warning":' in b
        out(
            "refused" if r.status >= 400 else "right" if ok else "WRONG",
            "/api/v1/%s of a serve with live off" % p,
            "%d, %s %s" % (r.status, "has a warning" if ok else "NO WARNING", b[:150] if r.status >= 400 or not ok else ""),
        )
    for g in ({}, GRAF):
        for p, par in (
            ("query_range", [("query", '{service_name="ident"}')]),
            ("query_range", [("query", 'sum(count_over_time({service_name="ident"}[5m]))'), ("step", 60)]),
            ("query", [("query", 'sum(count_over_time({service_name="ident"}[5m]))')]),
            ("series", []),
            ("labels", []),
            ("label/service_name/values", []),
            ("index/volume", [("query", "{}")]),
            ("detected_fields", [("query", "{}")]),
        ):
            r = qo.get("/loki/api/v1/" + p, par + [("start", lo), ("end", hi)], g)
            b = r.body.decode()
            ok = r.status >= 400 or "warnings" in b
            out(
                "refused" if r.status >= 400 else "right" if ok else "WRONG",
                "/loki/api/v1/%s of a serve with live off%s" % (p, " (Grafana)" if g else ""),
                "%d %s %s" % (r.status, "has a warning" if ok else "NO WARNING", b[:120]),
            )
    qo.stop()
    print("# the log of B is lost, and it starts anew")
    os.rename(B.wal, B.wal + ".lost")
    B.start()
    B.send(mk("ident", "now", 3))
    ask(q)
    B.kill9()
    print("# B has its log again")
    os.rename(B.wal, B.wal + ".new")
    os.rename(B.wal + ".lost", B.wal)
    B.start()
    ask(q)
    print("# the tables are removed while both hold some")
    shutil.rmtree(os.path.join(w.store, ".tables"))
    ask(q)
    B.kill9()
    ask(q)
    for i in range(2):
        time.sleep(5)
        c_count(q, ["ident"], lo, hi, whole=False)
        c_rec(q, ["*"], lo, hi, limit=0, whole=False)
        c_loki(q, ["ident"], lo, hi, limit=5000, grafana=True, whole=False)
    q.stop()


def ph_big(w):
    """answers that are larger than what Loki's API gives, and compressed ones"""
    import gzip
    import zlib

    q = w.serve()
    A = w.ing["a"]
    t0 = T0 - 6 * D
    for i in range(5):
        A.send(
            [
                Rec(
                    t0 + (i * 800 + j) * 1000,
                    random.choice(LV),
                    "large",
                    msg="u%dq " % (uidc[0] + 1) + base64.b64encode(os.urandom(7500)).decode(),
                )
                for j in range(800)
            ]
        )
    for d in ("forward", "backward"):
        for g in (False, True):
            r = q.get(
                "/loki/api/v1/query_range",
                [("query", '{service_name="large"}'), ("start", t0), ("end", t0 + H), ("limit", 5000), ("direction", d)],
                GRAF if g else None,
            )
            if fail(r, r.path, False):
                continue
            j = js(r)
            got = sorted(int(re.search(r"u(\d+)q", v[1]).group(1)) for s in j["data"]["result"] for v in s["values"])
            ex = sorted(
                uids(
                    sorted(sel(w, ["large"], None, None), key=lambda x: x.ts)[: len(got)]
                    if d == "forward"
                    else sorted(sel(w, ["large"], None, None), key=lambda x: x.ts)[-len(got) :]
                )
            )
            out(
                ("right" if got == ex and j.get("warnings") else "WRONG") if len(got) < 4000 else "right",
                r.path,
                "%d of 4000 lines, %d bytes, warnings %s, the %s ones: %s"
                % (len(got), len(r.body), str(j.get("warnings"))[:150], "oldest" if d == "forward" else "newest", got == ex),
            )
    c_rec(q, ["large"], None, None, limit=0)
    c_rec(q, ["large"], None, None, limit=4000)
    c_rec(q, ["large"], None, None, first=3999)
    c_rec(q, ["large"], None, None, limit=3999, order="desc", form="events")
    for enc in ("gzip", "gzip;q=0.5, zstd;q=0", "deflate"):
        r = q.get("/api/v1/records", [("service", "large"), ("limit", 500)], {"Accept-Encoding": enc})
        b = r.body
        try:
            if r.headers.get("content-encoding") == "gzip":
                b = gzip.decompress(b)
            check(
                b.count(b"\n") == 500 and r.trailers.get("blobtail-complete") == "1",
                "/api/v1/records?service=large&limit=500 with Accept-Encoding: " + enc,
                "%d lines %s %s" % (b.count(b"\n"), r.headers.get("content-encoding"), r.trailers),
            )
        except Exception as e:
            out("WRONG", "records " + enc, repr(e))
    A.flush()
    bl = js(q.get("/api/v1/blobs", [("service", "large")]))["blobs"][0]["name"]
    f = os.path.join(w.store, bl)
    d = bytearray(open(f, "rb").read())
    os.chmod(f, 0o644)
    d[len(d) * 3 // 4] ^= 1
    open(f, "r+b").write(d)
    for enc in ("gzip", "zstd", "identity"):
        for form in ("lines", "events", "csv"):
            for par in (None, 1):
                r = q.get(
                    "/api/v1/records",
                    [("service", "large"), ("limit", 0), ("form", form)]
                    + ([("fields", "uid")] if form == "csv" else [])
                    + ([("partial", 1)] if par else []),
                    {"Accept-Encoding": enc},
                )
                if r.status >= 400:
                    out("incomplete", "/api/v1/records?service=large (damaged) %s %s" % (enc, form), "%d" % r.status)
                    continue
                gz = None
                if r.headers.get("content-encoding") == "gzip":
                    z = zlib.decompressobj(31)
                    tx = z.decompress(r.body)
                    gz = z.eof
                elif r.headers.get("content-encoding") == "zstd":
                    tx = None
                else:
                    tx = r.body
                comp = r.trailers.get("blobtail-complete")
                bad = (
                    (r.whole and not par and form != "events" and comp != "0")
                    or (comp == "1")
                    or (form == "events" and tx is not None and '"complete":true' in tx.decode("utf8", "replace"))
                    or (gz and not r.whole and not par and form != "events")
                )
                out(
                    "WRONG" if bad else "incomplete",
                    "/api/v1/records?service=large (damaged) %s %s partial=%s" % (enc, form, par),
                    "ends well: %s, gzip ends well: %s, trailer %s" % (r.whole, gz, comp),
                )
    for h in ({}, {"Accept-Encoding": "zstd"}, {"Range": "bytes=0-"}, {"Accept-Encoding": "gzip"}):
        for p in ("", "?stored=1", "?partial=1", "?stored=1&partial=1"):
            r = q.get("/api/v1/blobs/" + bl + p, None, h)
            c = r.trailers.get("blobtail-complete") or r.headers.get("blobtail-complete")
            out(
                "WRONG" if c == "1" or (r.whole and r.status == 200 and c != "0") else "refused" if r.status >= 400 else "incomplete",
                "/api/v1/blobs/DAMAGED%s with %s" % (p, h),
                "%d, ends well: %s, Blobtail-Complete: %s" % (r.status, r.whole, c),
            )
    q.stop()
    shutil.rmtree(os.path.join(w.store, "large"))
    with w.lock:
        w.ledger[:] = [r for r in w.ledger if r.svc != "large"]


def ph_dead(w):
    """every route while an ingester that holds records is dead, or hangs, with services that nobody else has"""
    A, B, C = [w.ing[x] for x in "abc"]
    q = w.serve()
    t = NOW - 4 * MIN
    A.flush()
    B.flush()
    C.flush()
    rs = [Rec(t + i * S, random.choice(LV), "dead", status=200, fa="a") for i in range(0, 60, 2)]
    A.send(rs[:15])
    A.flush()
    A.send(rs[15:])
    B.send(
        [Rec(t + i * S, random.choice(LV), "dead", status=502, fb="b") for i in range(1, 60, 2)]
        + [Rec(t + i * S, "warn", "dead-b-%d" % (i % 3), fb="b") for i in range(9)]
    )
    B.send([Rec(t + i * S, "warn", "dead-new", fb="b") for i in range(3)])
    r = q.get("/api/v1/records", [("service", "dead"), ("form", "events"), ("limit", 0)])
    full = [json.loads(l)["record"] for l in r.body.decode().splitlines() if '"record"' in l]
    ids = [x["id"] for x in full]
    own = {x["id"]: x["line"].get("fa", "b") for x in full}
    L = [("start", t - H), ("end", t + H)]
    # exact answers while all live
    ref = {}

    def routes():
        o = []
        for lqs in ('{service_name=~"dead.*"}', '{service_name="dead-b-1"}', "{}"):
            for p, par in (
                ("query_range", [("query", lqs), ("limit", 5000)]),
                ("query_range", [("query", "sum by (service_name)(count_over_time(%s[10m]))" % lqs), ("step", 600)]),
                ("query_range", [("query", "sum(count_over_time(%s | status=502 [10m]))" % lqs), ("step", 600)]),
                ("query", [("query", "sum(count_over_time(%s[2h]))" % lqs), ("time", t + H)]),
                ("series", [("match[]", lqs)]),
                ("index/stats", [("query", lqs)]),
                ("index/volume", [("query", lqs)]),
                ("index/volume_range", [("query", lqs), ("step", 600)]),
                ("detected_labels", [("query", lqs)]),
                ("detected_fields", [("query", lqs)]),
                ("detected_field/fb/values", [("query", lqs)]),
                ("label/service_name/values", [("query", lqs)]),
                ("label/level/values", [("query", lqs)]),
                ("labels", [("query", lqs)]),
            ):
                o.append(("/loki/api/v1/" + p, par + L))
        for sv in (["dead-b-1"], ["dead-b-*"], ["dead", "dead-b-2"], ["dead"], ["*"]):
            for p in ("count", "histogram", "facets", "days", "blobs"):
                o.append(
                    (
                        "/api/v1/" + p,
                        [("service", x) for x in sv]
                        + (
                            [("by", "10m"), ("split", "service")]
                            if p == "histogram"
                            else [("fields", "fb,service,level")]
                            if p == "facets"
                            else []
                        ),
                    )
                )
        o += [("/api/v1/services", []), ("/api/v1/services", [("since", "2h")])]
        return o

    def strip(p, b):
        try:
            j = json.loads(b)
        except Exception:
            return None
        if isinstance(j, dict):
            for k in ("cost", "notes", "examined", "higher", "range"):
                j.pop(k, None)  # range ends at the time of the question
            if "data" in j and isinstance(j["data"], dict):
                j["data"].pop("stats", None)
        return json.dumps(j, sort_keys=True)

    R = routes()
    for p, par in R:
        r = q.get(p, par, GRAF)
        ref[(p, str(par))] = strip(p, r.body) if r.status == 200 else None

    def against(tag, hd):
        for p, par in R:
            r = q.get(p, par, hd if "loki" in p else None, timeout=60)
            nm = "%s%s, %s" % (r.path, " (Grafana)" if hd else "", tag)
            if r.status == 0:
                out("WRONG", nm, "no answer %s" % r.err)
                continue
            b = r.body.decode("utf8", "replace")
            if r.status == 404:
                out("WRONG", nm, "404 while it may exist: " + b[:150])
                continue
            if r.status >= 400:
                out("incomplete" if "loki" in p or r.status in (503, 504) else "WRONG", nm, "%d %s" % (r.status, b[:120]))
                continue
            j = js(r)
            c = (
                j["complete"]
                if "complete" in j
                else not (j.get("warnings") or (isinstance(j.get("data"), dict) and j["data"].get("warnings")))
            )
            same = strip(p, r.body) == ref[(p, str(par))]
            if p.endswith("services") and par:
                same = True if c and "dead-b-1" in b else False
            out(
                "incomplete" if not c else "right" if same else "WRONG",
                nm,
                ("says so" if not c else "the same as when all lived" if same else "looks whole and differs: " + b[:200]),
            )
        for sv in (["dead-b-1"], ["dead-b-*"], ["dead", "dead-b-2"], ["dead*"], ["*"]) if "hangs" not in tag else (["dead-b-1"],):
            exp = len(sel(w, sv, None, None))
            r = q.get("/api/v1/tail", [("service", x) for x in sv] + [("once", 1), ("n", 1000)], timeout=60)
            nm = r.path + ", " + tag
            b = r.body.decode()
            if r.status == 404 and tag != "B is back":
                out("WRONG", nm, "404 while it may exist: " + b[:200])
            elif r.status >= 400:
                out("refused", nm, "%d %s" % (r.status, b[:150]))
            else:
                c = '"complete":true' in b and '"problem"' not in b
                k = b.count('data: {"record"')
                out("incomplete" if not c else "right" if k == min(exp, 1000) else "WRONG", nm, "%d records of %d" % (k, exp))
        for i in random.sample(range(1, 59), 8) + [0, 59] if "hangs" not in tag else [7]:
            r = q.get("/api/v1/records/dead/" + ids[i], timeout=60)
            j = js(r)
            nm = "/api/v1/records/dead/ID of %s, %s" % (own[ids[i]], tag)
            if r.status >= 400:
                out(
                    "WRONG"
                    if r.status in (404, 500) and not re.search("not known|could not|missing|may|incomplete|hold", r.body.decode())
                    else "incomplete",
                    nm,
                    "%d %s" % (r.status, r.body[:200]),
                )
            else:
                ok = j.get("previous") == (ids[i - 1] if i else None) and j.get("next") == (ids[i + 1] if i < 59 else None)
                out(
                    "incomplete" if not j["complete"] else "right" if ok else "WRONG",
                    nm,
                    "complete %s, neighbours %s" % (j["complete"], ok),
                )
            r = q.get("/api/v1/context", [("service", "dead"), ("id", ids[i]), ("before", 3), ("after", 3)], timeout=60)
            nm = r.path + ", " + tag
            if r.status >= 400:
                out(
                    "WRONG"
                    if r.status in (404, 500) and not re.search("not known|could not|missing|may|incomplete|hold", r.body.decode())
                    else "incomplete",
                    nm,
                    "%d %s" % (r.status, r.body[:200]),
                )
                continue
            ev = [json.loads(l) for l in r.body.decode().splitlines()]
            g = [e["record"]["id"] for e in ev if "record" in e]
            end = [e["end"] for e in ev if "end" in e]
            c = bool(end and end[0]["complete"])
            ex = ids[max(0, i - 3) : i + 4]
            out(
                "incomplete" if not c else "right" if g == ex else "WRONG",
                nm,
                "complete %s, %d of %d" % (c, len(set(g) & set(ex)), len(ex)),
            )

    B.kill9()
    time.sleep(0.2)
    qn = w.serve()
    r = qn.get("/api/v1/tail", [("service", "dead-new"), ("once", 1)])
    out(
        "WRONG" if r.status == 404 or b'"complete":true' in r.body else "incomplete",
        r.path + " while the ingester that has its records is dead",
        "%d %s" % (r.status, r.body[:160]),
    )
    r = qn.get("/api/v1/count", [("service", "dead-new")])
    out(
        "WRONG" if r.status == 404 or b'"complete":true' in r.body else "incomplete",
        r.path + " while the ingester that has its records is dead",
        "%d %s" % (r.status, r.body[:100]),
    )
    qn.stop()
    against("B is dead", GRAF)
    against("B is dead", None)
    # a tail by WebSocket that begins while B is away, and has B's records later
    ws = WS(q.addr, "/loki/api/v1/tail?" + urlencode({"query": '{service_name=~"dead.*"}', "start": str(t - H), "limit": "5000"}), GRAF)
    got = []
    fr = []
    b_at = time.time() + 2.5
    done = False
    end = time.time() + 9
    while time.time() < end:
        if not done and time.time() > b_at:
            B.start()
            done = True
        try:
            m = ws.recv(0.5)
        except Exception:
            continue
        if not m or m[0] == 8:
            fr.append(("closed", m and m[1][:100]))
            break
        if m[0] == 1:
            j = json.loads(m[1])
            got += [v[1] for s in j.get("streams") or [] for v in s["values"]]
            fr += [k for k in j if k != "streams"]
    if not done:
        B.start()
    ws.close()
    exp = sel(w, ["dead*"], None, None)
    if ws.status != 101:
        out("refused", "ws tail while B is dead", "status %d" % ws.status)
    else:
        out(
            "right" if len(got) == len(exp) == len(set(got)) else "incomplete" if fr else "WRONG",
            "ws /loki/api/v1/tail?start=... begun while B is dead, B comes back",
            "%d frames' lines of %d, %d different; other keys %s" % (len(got), len(exp), len(set(got)), fr[:3]),
        )
    time.sleep(6)
    against("B is back", None)
    q.stop()


atexit.register(cleanup)


def bye(*a):
    sys.exit(3)


signal.signal(signal.SIGTERM, bye)
signal.signal(signal.SIGINT, bye)
T_ = time.time()
N = int(os.environ.get("N", "70"))
ONLY = [x for x in os.environ.get("PHASES", "").split(",") if x]


def phase(n, fn):
    if ONLY and n not in ONLY:
        return
    t = time.time()
    print("## " + n + ": " + (fn.__doc__ or ""), flush=True)
    try:
        fn()
    except Exception as e:
        import traceback

        out("WRONG", "the script itself, " + n, repr(e) + " " + traceback.format_exc()[-300:].replace("\n", " "))
    print("## %s took %.1f s" % (n, time.time() - t), flush=True)


def track1():
    w = World("a")
    build(w, int(os.environ.get("BIG", "12000")))
    q = w.serve()
    A, B, C = w.ing["a"], w.ing["b"], w.ing["c"]
    phase("healthy", lambda: sweep(q, N))
    phase("copies", lambda: ph_copies(w))
    phase("concurrent", lambda: ph_conc(w, q, 9, 3, 5))

    def kl():
        time.sleep(2)
        B.kill9()
        time.sleep(2.5)
        B.start()
        time.sleep(1)
        C.stop()
        time.sleep(2.5)
        C.cont()

    phase("concurrent with kills", lambda: ph_conc(w, q, 10, 3, 5, kl, "kills: "))
    B.send(mk("web", "now", 20) + mk("orders", "yest", 9))
    C.send(mk("web", "now", 20) + mk("late", "month", 9))
    A.send(mk("web", "now", 20))

    def dead():
        B.kill9()
        sweep(q, N // 2, False)
        C.stop()
        sweep(q, 3, False)

    phase("one ingester dead, one hung", dead)
    B.start()
    C.cont()
    time.sleep(1)
    phase("both are back", lambda: sweep(q, N // 2))
    for i in (A, B, C):
        i.flush()
    phase("flushed", lambda: sweep(q, N // 2))
    m = q.rss()
    check(0 < m < 700, "memory of serve", "%d MiB at most" % m)
    q.stop()
    phase("dead", lambda: ph_dead(w))
    phase("tmp", lambda: ph_tmp(w))
    for i in (A, B, C):
        i.kill9()


def track2():
    phase("tokens", ph_tokens)
    w = World("b")
    w.ing = {n: Ingester(w, n) for n in "abc"}
    phase("odd", lambda: ph_odd(w))
    phase("zones", lambda: ph_zones(w))
    phase("numbers", lambda: ph_numbers(w))
    phase("ages", lambda: ph_ages(w))
    phase("names", lambda: ph_names(w))
    phase("big", lambda: ph_big(w))
    phase("damage", lambda: ph_damage(w))
    phase("cursor", lambda: ph_cursor(w))

    def fl():
        q = w.serve()
        ph_floor(w, q, 5)
        q.stop()

    fl.__doc__ = ph_floor.__doc__
    phase("floor", fl)
    w.ing["c"].flush()
    phase("drop", lambda: ph_drop(w))
    phase("load", lambda: ph_load(w))
    for i in w.ing.values():
        if i.p.poll() is None:
            i.flush()
    for n in list(w.ing):
        if n not in "ab" and w.ing[n].p.poll() is None:
            w.ing[n].term()
    # a store of its own, since tables are removed
    w3 = World("c")
    w3.ing = {n: Ingester(w3, n) for n in "ab"}
    [w.ing[n].kill9() for n in "ab"]
    phase("ident", lambda: ph_ident(w3))


th = [threading.Thread(target=t) for t in (track1, track2)]


def guard(t):
    def f():
        try:
            t()
        except Exception as e:
            import traceback

            out("WRONG", "the script itself", repr(e) + " " + traceback.format_exc()[-300:].replace("\n", " "))

    return f


th = [threading.Thread(target=guard(t), daemon=True) for t in (track1, track2)]
for t in th:
    t.start()
for t in th:
    t.join()
cleanup()
for o in sorted(set(odd))[:25]:
    print("odd        " + o[:300])
for l in wrongs:
    print("AGAIN " + l)
print("%d requests in %.0f s: %s" % (sum(counts.values()), time.time() - T_, ", ".join("%s %d" % (k, v) for k, v in counts.items())))
sys.stdout.flush()
os._exit(1 if counts["WRONG"] else 0)
