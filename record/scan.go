package record

const (
	MaxRecord   = 1 << 20
	MaxDepth    = 64
	MaxRejected = 256 << 10
)

type Parser struct{}

func NewParser() *Parser { return &Parser{} }

func (p *Parser) Scan(src []byte) (n int, err error) { panic("todo") }

type RejectError struct {
	Offset int
	Reason string
	Syntax bool
}

func (e *RejectError) Error() string { return e.Reason }

type Defaults struct {
	Service string
	Time    int64
}

type Stamp struct {
	Time    int64
	OwnTime bool
	Level   Level
	Service string
}

func (p *Parser) AppendLine(dst []byte, d Defaults) ([]byte, Stamp)       { panic("todo") }
func (p *Parser) AppendText(dst, text []byte, d Defaults) ([]byte, Stamp) { panic("todo") }

type Rejected struct {
	Raw            []byte
	Reason, Source string
	Line           int
	Time           int64
	Service        string
}

func AppendRejected(dst []byte, r Rejected) []byte { panic("todo") }
