package stage

import (
	"fmt"
	"net/netip"

	"blobtail/logql"
)

// ips is a range of addresses.
type ips struct{ first, last netip.Addr }

// newIPs reads an address, a network or a range.
func newIPs(text string) (*ips, error) {
	first, last, err := logql.IPRange(text)
	if err != nil {
		return nil, fmt.Errorf("ip: %w", err)
	}
	return &ips{first, last}, nil
}

// has reports whether an address is in the range.
func (r *ips) has(text []byte) bool {
	addr, err := netip.ParseAddr(string(text))
	return err == nil && addr.Is4() == r.first.Is4() && !addr.Less(r.first) && !r.last.Less(addr)
}

// longestIP is the length of the longest text of an address.
const longestIP = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

// in reports whether a text has an address that is in the range.
func (r *ips) in(text []byte) bool {
	for at := 0; at < len(text); at++ {
		if !ofIP(text[at]) || at > 0 && ofIP(text[at-1]) {
			continue
		}
		end := at
		for end < len(text) && ofIP(text[end]) {
			end++
		}
		if r.inRun(text[at:end]) {
			return true
		}
		at = end
	}
	return false
}

// ofIP reports whether a character may be in an address.
func ofIP(c byte) bool {
	return c-'0' < 10 || c == '.' || c == ':' || c|0x20-'a' < 6
}

// inRun is in for a text of nothing but characters of addresses: an address, or one with a port
// or a punctuation mark behind it.
func (r *ips) inRun(run []byte) bool {
	if r.first.Is4() {
		for at := 0; at < len(run); at++ {
			end := at
			for end < len(run) && (run[end] == '.' || run[end]-'0' < 10) {
				end++
			}
			if r.trimmed(run[at:end], '.') {
				return true
			}
			at = end
		}
		return false
	}
	return r.trimmed(run, ':') || r.trimmed(run, '.')
}

// trimmed reports whether a text is an address of the range, but for marks at its ends.
func (r *ips) trimmed(text []byte, mark byte) bool {
	if len(text) < 2 || len(text) > longestIP+2 {
		return false
	}
	if r.has(text) {
		return true
	}
	for len(text) > 0 && text[len(text)-1] == mark {
		text = text[:len(text)-1]
	}
	for len(text) > 0 && text[0] == mark {
		text = text[1:]
	}
	return r.has(text)
}
