package config

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"blobtail/internal/when"
	"blobtail/record"
)

// Syslog has the address for syslog over TCP, and its senders.
type Syslog struct {
	Listen   string   `yaml:"listen" name:"syslog" help:"Address that senders of syslog connect to over TCP." env:"BLOBTAIL_SYSLOG" placeholder:"ADDRESS"`
	Allow    []string `yaml:"allow" kong:"-"`           // networks that may connect
	Service  string   `yaml:"service" kong:"-"`         // of all records; "": each has its own
	Services []string `yaml:"services" kong:"-"`        // names and globs of the only ones that may be written
	Zone     string   `yaml:"zone" kong:"-"`            // of times without one; "": the host's
	MaxConns int      `yaml:"max-connections" kong:"-"` // open at once
	Cert     string   `yaml:"cert" kong:"-"`            // path of the certificate; "": no TLS
	Key      string   `yaml:"key" kong:"-"`             // path of its key
	ClientCA string   `yaml:"client-ca" kong:"-"`       // path of the authorities of certificates that senders must show
}

// Networks are the networks of Allow. An address alone is a network of one.
func (s Syslog) Networks() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range s.Allow {
		p, err := network(text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func network(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// Location is the zone of times without one.
func (s Syslog) Location() (*time.Location, error) {
	if s.Zone == "" {
		return time.Local, nil
	}
	return when.Zone(s.Zone)
}

// validate reports mistakes.
func (s Syslog) validate(m *mistakes) {
	if s.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(s.Listen)
	m.check(err == nil && isPort(port), "syslog.listen", s.Listen, "want host:port, for example "+withHost(s.Listen, "127.0.0.1:6514"))
	for _, text := range s.Allow {
		_, err := network(text)
		m.check(err == nil, "syslog.allow", text, "want networks and addresses, for example 10.0.0.0/8")
	}
	ip, isIP := netip.ParseAddr(host)
	local := host == "localhost" || isIP == nil && ip.IsLoopback()
	m.check(err != nil || local || len(s.Allow) > 0 || s.ClientCA != "", "syslog.listen", s.Listen,
		"want syslog.allow with the networks that may send (0.0.0.0/0 and ::/0 are all), or syslog.client-ca: syslog has no passwords")
	m.check(s.Service == "" || record.ValidService(s.Service), "syslog.service", s.Service, "want a name such as "+record.FoldService(s.Service))
	for _, pattern := range s.Services {
		m.check(record.ValidPattern(pattern), "syslog.services", pattern, "want names and globs, for example web-*")
		m.check(s.Service == "", "syslog.services", pattern, "want none, because syslog.service gives all records one service")
	}
	_, err = s.Location()
	m.check(err == nil, "syslog.zone", s.Zone, "want a zone such as Europe/Berlin, UTC or +05:30, or nothing for the host's")
	m.check(s.MaxConns >= 1 && s.MaxConns <= 100_000, "syslog.max-connections", s.MaxConns, "want 1 to 100000")
	m.check((s.Cert == "") == (s.Key == ""), "syslog.cert", plain(s.Cert), "want syslog.cert and syslog.key, or neither")
	m.check(s.ClientCA == "" || s.Cert != "", "syslog.client-ca", s.ClientCA, "want syslog.cert and syslog.key too: certificates are shown over TLS")
}
