package stage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/printing"
	"blobtail/logql"
	"blobtail/record"
)

// maxOutput bounds the output of a template for one line, and that of each function in it.
const maxOutput = 1 << 20

// errOutput says that a template makes more text than one line may be.
var errOutput = errors.New("the template makes more than 1 MiB for one line")

// templates are those of a query. They share one set of functions, which is larger than most of
// them.
type templates struct {
	root *template.Template
	n    int
	// compared are the values that comparisons get.
	compared int
}

// maxCompared bounds the values that the templates of a query compare. The functions are those of
// package template, which compare long texts without a look at the budget.
const maxCompared = 1000

// parse parses a template, which gets a name of its own.
func (all *templates) parse(text string) (*template.Template, error) {
	if all.root == nil {
		all.root = template.New("line").Option("missingkey=zero").Funcs(functions(nil))
	}
	all.n++
	t, err := all.root.New(strconv.Itoa(all.n)).Parse(text)
	if err == nil && len(all.root.Templates()) > all.n {
		err = errors.New("define and block are not allowed")
	}
	return t, err
}

// A form is a template. It has no loops, so it ends.
type form struct {
	of    *templates
	name  string
	refs  []*ref
	all   bool // it reads all labels
	line  bool // it reads the line
	plain []piece
}

// A piece is a part of a template that is nothing but texts and names.
type piece struct {
	text string
	of   *ref // nil for a text
	line bool // the line
}

// form compiles a template. An error is a [*logql.TextError].
func (all *templates) form(text string) (*form, error) {
	f, err := all.compile(text)
	if err != nil {
		return nil, &logql.TextError{Text: text, Err: err}
	}
	return f, nil
}

func (all *templates) compile(text string) (*form, error) {
	t, err := all.parse(text)
	if err != nil {
		reason := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "template: "), strconv.Itoa(all.n)+":")
		if strings.Contains(reason, "function") && strings.Contains(reason, "not defined") {
			reason += "; there are " + strings.Join(slices.Sorted(maps.Keys(functions(nil))), " ")
		}
		return nil, fmt.Errorf("the template: %s", reason)
	}
	f := &form{of: all, name: t.Name()}
	w := &walker{f: f, seen: map[string]bool{}}
	if t.Tree != nil && t.Root != nil {
		w.list(t.Root, true)
		f.plain = w.pieces(t.Root)
	}
	if w.err != nil {
		return nil, w.err
	}
	return f, nil
}

// A walker finds the names that a template reads, and refuses actions that could run for long.
type walker struct {
	f    *form
	seen map[string]bool
	err  error
}

func (w *walker) name(ident []string) {
	if len(ident) > 0 && !w.seen[ident[0]] {
		w.seen[ident[0]] = true
		w.f.refs = append(w.f.refs, newRef(ident[0]))
	}
}

// list walks a list of nodes. root says that the dot is the labels.
func (w *walker) list(l *parse.ListNode, root bool) {
	if l != nil {
		for _, n := range l.Nodes {
			w.node(n, root)
		}
	}
}

// node walks one node.
func (w *walker) node(n parse.Node, root bool) {
	switch n := n.(type) {
	case *parse.TextNode, *parse.CommentNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
	case *parse.ActionNode:
		w.node(n.Pipe, root)
	case *parse.IfNode:
		w.branch(&n.BranchNode, root, root)
	case *parse.WithNode:
		w.branch(&n.BranchNode, root, false)
	case *parse.PipeNode:
		for _, cmd := range n.Cmds {
			w.compares(cmd)
			for _, arg := range cmd.Args {
				w.node(arg, root)
			}
		}
	case *parse.FieldNode:
		w.name(n.Ident)
	case *parse.ChainNode:
		w.node(n.Node, root)
		w.name(n.Field)
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			w.f.all = w.f.all || len(n.Ident) == 1
			w.name(n.Ident[1:])
		}
	case *parse.DotNode:
		w.f.all = w.f.all || root
	case *parse.IdentifierNode:
		w.f.line = w.f.line || n.Ident == "__line__"
	default:
		if w.err == nil {
			w.err = fmt.Errorf("the template: %s is not allowed; there are names, functions, if and with", n)
		}
	}
}

// compares counts the values of a comparison.
func (w *walker) compares(cmd *parse.CommandNode) {
	name, ok := cmd.Args[0].(*parse.IdentifierNode)
	if !ok || !slices.Contains([]string{"eq", "ne", "lt", "le", "gt", "ge", "index"}, name.Ident) {
		return
	}
	if w.f.of.compared += len(cmd.Args); w.f.of.compared > maxCompared && w.err == nil {
		w.err = fmt.Errorf("the template: the query compares more than %d values in templates", maxCompared)
	}
}

func (w *walker) branch(b *parse.BranchNode, root, inside bool) {
	w.node(b.Pipe, root)
	w.list(b.List, inside)
	w.list(b.ElseList, root)
}

// pieces are those of a template that has nothing but texts and names; nil for any other.
func (w *walker) pieces(l *parse.ListNode) []piece {
	pieces := []piece{}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			pieces = append(pieces, piece{text: string(n.Text)})
		case *parse.ActionNode:
			if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
				return nil
			}
			switch arg := n.Pipe.Cmds[0].Args[0].(type) {
			case *parse.FieldNode:
				if len(arg.Ident) != 1 {
					return nil
				}
				pieces = append(pieces, piece{of: newRef(arg.Ident[0])})
			case *parse.IdentifierNode:
				if arg.Ident != "__line__" {
					return nil
				}
				pieces = append(pieces, piece{line: true})
			default:
				return nil
			}
		default:
			return nil
		}
	}
	return pieces
}

// forms are the templates of one state: those that it runs have functions that know it.
type forms struct {
	own  *template.Template // all templates of the query
	data map[string]string
	made int // bytes of data and of the results of functions
	out  output
}

// gather gathers the labels that a template reads.
func (f *form) gather(s *state) map[string]string {
	if s.forms.data == nil {
		s.forms.data = map[string]string{}
	}
	data := s.forms.data
	clear(data)
	if f.all {
		s.addAll()
		for i := range s.all {
			if s.makes(len(s.all[i].value)) == nil {
				data[s.all[i].name] = string(s.all[i].value)
			}
		}
	}
	for _, r := range f.refs {
		if value, ok := s.get(r); ok && s.makes(len(value)) == nil {
			data[r.name] = string(value)
		}
	}
	return data
}

// addAll gathers all labels of the record.
func (s *state) addAll() {
	s.all = s.all[:0]
	for _, r := range s.streams {
		s.addUnmade(r)
	}
	s.addUnmade(s.levelRef)
	s.addFields()
	for i := range s.made {
		if m := &s.made[i]; !m.gone {
			s.all = append(s.all, pair{m.name, m.value})
		}
	}
}

// render returns the output for a record. It is valid until the memory of the state for one stage
// is used again.
func (f *form) render(s *state) ([]byte, error) {
	out := &s.forms.out
	out.b, out.of = s.spare[:0], s.budget
	err := f.execute(s, out)
	s.spare, out.b = out.b, nil
	return s.spare, err
}

func (f *form) execute(s *state, out *output) error {
	if f.plain != nil {
		return f.join(s, out)
	}
	if s.forms.own == nil {
		clone, err := f.of.root.Clone()
		if err != nil {
			return err
		}
		s.forms.own = clone.Funcs(functions(s))
	}
	err := failure(s.forms.own.ExecuteTemplate(out, f.name, f.gather(s)))
	s.share.Back(s.share.Used() - int64(s.forms.made)) // its variables and the results of its functions are gone
	s.forms.made = 0
	if over := s.budget.Err(); over != nil {
		return over
	}
	return err
}

// failure is an error of a template in short: the failed action, and the reason.
func failure(err error) error {
	if err == nil || errors.Is(err, errOutput) {
		return err
	}
	const longest = 300
	return errors.New(string(record.CutText([]byte(printing.Reason(err)), longest)))
}

// join is execute for a template of texts and names.
func (f *form) join(s *state, out *output) error {
	for i := range f.plain {
		p := &f.plain[i]
		var text []byte
		switch {
		case p.of != nil:
			text, _ = s.get(p.of)
		case p.line:
			text = s.text()
		default:
			out.b = append(out.b, p.text...)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// output is a writer that takes no more than it may, and nothing once the budget has ended.
type output struct {
	b  []byte
	of *budget.Budget
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.of.Err(); err != nil {
		return 0, err
	}
	if len(o.b)+len(p) > maxOutput {
		return 0, errOutput
	}
	o.b = append(o.b, p...)
	return len(p), nil
}

// lineText is the function __line__, and lineTime is __timestamp__.
func (s *state) lineText() (string, error) {
	line := s.text()
	if err := s.makes(len(line)); err != nil {
		return "", err
	}
	return string(line), nil
}

func (s *state) lineTime() time.Time {
	ns, _ := record.LineTime(s.raw)
	return time.Unix(0, ns).UTC()
}

// needs adds the labels and the line, if the template reads them.
func (f *form) needs(n *need) {
	n.add(f.refs...)
	n.all = n.all || f.all
	n.line = n.line || f.line
}
