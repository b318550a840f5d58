package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"blobtail/internal/door"
)

const (
	mostLogin = 4 << 10
	loginWait = 30 * time.Second
)

// login begins a session of the holder of a token, or ends one.
func (c *call) login() error {
	if c.r.Method == http.MethodDelete {
		if f := c.o.Guard.Logout(c.w, c.r); f != nil {
			return f
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	text, err := c.shown()
	if err != nil {
		return err
	}
	token, ends, f := c.o.Guard.Login(c.w, c.r, text)
	if f != nil {
		return f
	}
	return c.me(token, ends)
}

// shown reads the token in the body of a request. No error has anything of the body. Forms of other
// sites cannot send JSON.
func (c *call) shown() (string, error) {
	const want = `want {"token": "ID.SECRET"}`
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", door.Refuse(http.StatusUnsupportedMediaType, "the Content-Type is to be application/json; %s", want)
	}
	rc := http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(time.Now().Add(loginWait)) // a test's recorder has none
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, mostLogin))
	_ = rc.SetReadDeadline(time.Time{})
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return "", door.Refuse(http.StatusRequestEntityTooLarge, "the body is longer than 4 KiB; %s", want)
	}
	if err != nil {
		return "", door.Refuse(http.StatusRequestTimeout, "the body did not come whole within 30 s")
	}
	var login struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(body, &login) != nil {
		return "", badRequest("the body cannot be read; %s", want)
	}
	if login.Token == "" {
		return "", badRequest("the body has no token; %s", want)
	}
	return login.Token, nil
}
