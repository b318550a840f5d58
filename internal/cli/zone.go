package cli

import (
	"strings"
	"time"

	"blobtail/storage/fsys"
)

// UnknownZone says, in one line, that the zone of the environment is unknown, and that times without
// a zone are in UTC therefore; "" if it is known, or none is set. The runtime of Go is silent.
func UnknownZone(getenv func(string) string) string {
	text := getenv("TZ")
	name := strings.TrimPrefix(text, ":")
	var err error
	if strings.HasPrefix(name, "/") {
		var data []byte
		if data, err = fsys.Read(name); err == nil {
			_, err = time.LoadLocationFromTZData(name, data)
		}
	} else if name != "" {
		_, err = time.LoadLocation(name)
	}
	if err == nil {
		return ""
	}
	return "TZ=" + SafeLine(text) + " is no zone that is known here, so local times are in UTC; zones look like Europe/Berlin, or unset TZ for that of the host"
}
