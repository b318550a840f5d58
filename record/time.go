package record

func ParseTime(s []byte) (ns int64, ok bool)          { panic("todo") }
func AppendTime(dst []byte, ns int64) []byte          { panic("todo") }
func ParseCanonicalTime(b []byte) (ns int64, ok bool) { panic("todo") }
