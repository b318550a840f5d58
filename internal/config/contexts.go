package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"blobtail/internal/yamltext"
	"blobtail/storage/fsys"
)

// Contexts are the stores of a user by names of their own, in a file in the user's
// configuration directory.
type Contexts struct {
	Current string             `yaml:"current,omitempty"` // used unless another store is given
	All     map[string]Context `yaml:"contexts"`

	path string
}

// Context is a store and the way to read it, or a server that reads one. It holds no secret, but may
// name the file of one.
type Context struct {
	Store string `yaml:"store,omitempty"`
	Live  string `yaml:"live,omitempty"` // URL of an ingester
	// Server is the URL of a server that reads a store.
	Server    string `yaml:"server,omitempty"`
	PlainHTTP bool   `yaml:"plain-http,omitempty"` // the server may get the token without TLS
	// TokenFile has the token that ingesters, or the server, are shown.
	TokenFile string `yaml:"token-file,omitempty"`
	// CA and ServerName are those of [TLS].
	CA         string `yaml:"ca,omitempty"`
	ServerName string `yaml:"server-name,omitempty"`

	Config   string `yaml:"config,omitempty"`
	Timezone string `yaml:"timezone,omitempty"`
	// Forms count before those of the configuration.
	Forms Forms `yaml:"forms,omitempty"`
}

func contextName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) }

// ReadContexts reads the contexts of a configuration directory, as of
// [os.UserConfigDir]. There are none without a file, or if the user has no directory.
func ReadContexts(dir string) (*Contexts, error) {
	c := &Contexts{All: map[string]Context{}, path: filepath.Join(dir, "blobtail", "contexts.yaml")}
	if dir == "" {
		return c, nil
	}
	text, err := fsys.Read(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("read contexts: %w", fsys.WhyUnread(err, ""))
	}
	if err := yamltext.Decode(text, c); err != nil {
		return nil, fmt.Errorf("contexts %s: %s", c.path, yamltext.Error(err, true))
	}
	if c.All == nil {
		c.All = map[string]Context{}
	}
	return c, nil
}

// Get returns the context of a name.
func (c *Contexts) Get(name string) (Context, error) {
	if found, ok := c.All[name]; ok {
		return found, nil
	}
	if len(c.All) == 0 {
		return Context{}, fmt.Errorf("there is no context %q; make it: logquery context add NAME --store STORE", name)
	}
	return Context{}, fmt.Errorf("there is no context %q; there are %s", name, strings.Join(c.Names(), ", "))
}

// Names are the names in order.
func (c *Contexts) Names() []string { return slices.Sorted(maps.Keys(c.All)) }

// Add adds or replaces a context. The first one becomes the current one.
func (c *Contexts) Add(name string, context Context) error {
	if !contextName().MatchString(name) {
		return fmt.Errorf("context %q: want up to 63 letters, digits, dots, dashes and underscores", name)
	}
	if len(c.All) == 0 {
		c.Current = name
	}
	c.All[name] = context
	return nil
}

// Remove removes a context.
func (c *Contexts) Remove(name string) error {
	if _, err := c.Get(name); err != nil {
		return err
	}
	delete(c.All, name)
	if c.Current == name {
		c.Current = ""
	}
	return nil
}

// Write replaces the file.
func (c *Contexts) Write() error {
	text, err := marshal(c)
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	if err := fsys.Replace(fsys.OS(), c.path, text); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	return nil
}

// Use makes a context the current one.
func (c *Contexts) Use(name string) error {
	_, err := c.Get(name)
	if err == nil {
		c.Current = name
	}
	return err
}
