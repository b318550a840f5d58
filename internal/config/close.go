package config

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"blobtail/internal/openstore"
)

// Close is how days that are over are closed.
type Close struct {
	After  Duration       `yaml:"after"`  // the end of a day
	Key    string         `yaml:"key"`    // file of the Ed25519 key that signs; "": nothing is signed
	Export openstore.Spec `yaml:"export"` // where retention apply exports closed days; "": nowhere
}

// PrivateKey reads the key; nil if none is configured.
func (c Close) PrivateKey() (ed25519.PrivateKey, error) {
	if c.Key == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Key)
	if err != nil {
		return nil, fmt.Errorf("close.key: %w", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("close.key: %s is no Ed25519 key in PEM; retention key makes one", c.Key)
}
