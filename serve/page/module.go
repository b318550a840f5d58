package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The statements that join modules stand on lines of their own. The last pattern is that of a module
// as a function, after the minifier: its parameters, its exports and its body. They are compiled when
// a file is served first, and not at the start of each program that has the page.

func importLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^import (?:\{ ([^}]*) \}|(\* as \w+)) from ("[^"]*")$`)
}

func exportLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^export ((?:const|class|(?:async )?function\*?) (\w+))`)
}

func joinLine() *regexp.Regexp { return regexp.MustCompile(`(?m)^(?:import|export)\b.*`) }

func asFunction() *regexp.Regexp {
	return regexp.MustCompile(`^x=function\(([^()]*)\)\{function [\w$]+\(\)\{return\[([^\]]*)\]\}(?s:(.*))\}$`)
}

// A module is a file of the page, without the lines that join it to others.
type module struct {
	imports []imports
	exports []string
	body    string
}

// imports is what a module takes of another.
type imports struct {
	all   bool // as one object
	names []string
	own   []string // names of names here
	from  string   // with its quotation marks
}

// moduleOf parses the lines that join a module to others.
func moduleOf(text string) (module, error) {
	var m module
	for _, found := range importLine().FindAllStringSubmatch(text, -1) {
		one := imports{all: found[2] != "", from: found[3]}
		for each := range strings.SplitSeq(found[1]+found[2], ", ") {
			name, own, other := strings.Cut(each, " as ")
			if !other {
				own = name
			}
			one.names, one.own = append(one.names, name), append(one.own, own)
		}
		m.imports = append(m.imports, one)
	}
	for _, found := range exportLine().FindAllStringSubmatch(text, -1) {
		m.exports = append(m.exports, found[2])
	}
	m.body = exportLine().ReplaceAllString(importLine().ReplaceAllString(text, ""), "$1")
	if other := joinLine().FindString(m.body); other != "" {
		return m, fmt.Errorf("%q is neither an import of names nor the export of a declaration", other)
	}
	return m, nil
}

// function is the module as a function. Its parameters are the imports, and its first statement
// names the exports.
func (m module) function() string {
	var own []string
	for _, one := range m.imports {
		own = append(own, one.own...)
	}
	return "x=function(" + strings.Join(own, ",") + "){function exports(){return[" + strings.Join(m.exports, ",") + "]}" + m.body + "\n}"
}

// from is the module with the names of such a function.
func (m module) from(function string) (string, error) {
	found := asFunction().FindStringSubmatch(function)
	if found == nil {
		return "", fmt.Errorf("the minifier made another function: %.200s", function)
	}
	split := func(list string) []string {
		return slices.DeleteFunc(strings.Split(list, ","), func(name string) bool { return name == "" })
	}
	own, exported := split(found[1]), split(found[2])
	var text strings.Builder
	for _, one := range m.imports {
		if len(own) < len(one.own) {
			return "", fmt.Errorf("the minifier left out imports: %.200s", function)
		}
		list := joined(one.names, own)
		if own = own[len(one.own):]; one.all {
			list += " "
		} else {
			list = "{" + list + "}"
		}
		text.WriteString("import" + list + "from" + one.from + ";")
	}
	if len(own) > 0 || len(exported) != len(m.exports) {
		return "", fmt.Errorf("the minifier has other imports or exports: %.200s", function)
	}
	text.WriteString(found[3])
	if len(exported) > 0 {
		text.WriteString(";export{" + joined(exported, m.exports) + "}")
	}
	return text.String(), nil
}

// joined lists names, each as another one if that differs.
func joined(names, as []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		if list[i] = name; name != as[i] {
			list[i] += " as " + as[i]
		}
	}
	return strings.Join(list, ",")
}
