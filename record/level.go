package record

type Level uint8

const (
	Trace Level = iota
	Debug
	Info
	Warn
	Error
	Critical
	Other
)

const NumLevels = 7

func (l Level) String() string                           { panic("todo") }
func ParseLevel(word string) (l Level, canonical string) { panic("todo") }
func LevelOf(canonicalWord []byte) Level                 { panic("todo") }
