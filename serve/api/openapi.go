package api

import (
	_ "embed"
	"net/http"

	"github.com/goccy/go-yaml"

	"blobtail/reading/form"
)

// description is the API in OpenAPI 3.1, written by hand.
//
//go:embed openapi.yaml
var description []byte

// openapi answers with the description of the API.
func (c *call) openapi() error {
	text, err := yaml.YAMLToJSON(description)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", form.JSON)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(text) // a client that has gone needs no answer
	return nil
}
