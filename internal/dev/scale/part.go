package scale

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// UpdateIn writes parts of one part of a result, such as "reads" and "start" of "b", like
// [Update]. It keeps the other parts of both if they are of the same commit.
func UpdateIn(dir, part string, parts map[string]any) (file string, err error) {
	var all struct {
		Commit string `json:"commit"`
	}
	of := map[string]json.RawMessage{}
	inside := map[string]any{}
	text, err := os.ReadFile(filepath.Join(dir, time.Now().Format(time.DateOnly)+".json"))
	if err == nil && json.Unmarshal(text, &all) == nil && all.Commit == commit() && json.Unmarshal(text, &of) == nil && len(of[part]) > 0 {
		if err := json.Unmarshal(of[part], &inside); err != nil {
			return "", err
		}
	}
	maps.Copy(inside, parts)
	return Update(dir, map[string]any{part: inside})
}
