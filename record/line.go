package record

func LineTime(line []byte) (ns int64, ok bool) { panic("todo") }
func LineLevel(line []byte) Level              { panic("todo") }
func LineMsg(line []byte) (off int, ok bool)   { panic("todo") }
