package record

const RejectedService = "_rejected"

func FoldService(name string) string { panic("todo") }
func ValidService(name string) bool  { panic("todo") }
func ValidStored(name string) bool   { panic("todo") }
