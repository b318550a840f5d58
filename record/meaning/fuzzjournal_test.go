package meaning_test

import "bytes"

// journalled has arrays as journalctl -o json writes them.
const journalled = `{"MESSAGE":[104,255],"A":["x",[1],null],"__REALTIME_TIMESTAMP":"1795168806257312"}`

// unlike reports whether an object may become another record than the reference says, which knows
// nothing of halves of surrogate pairs and of journald's arrays.
func unlike(object []byte) bool {
	object = bytes.ToLower(object)
	return bytes.Contains(object, []byte(`\ud`)) || bytes.Contains(object, []byte("realtime"))
}
