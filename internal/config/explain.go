package config

import (
	"encoding"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"blobtail/internal/spelling"
	"blobtail/internal/yamltext"
)

// noFile is the error for a file that does not exist. It names the file of the same
// directory that was probably meant.
func noFile(path string) error {
	where := path
	if whole, err := filepath.Abs(path); err == nil {
		where = whole
	}
	fix := "correct --config or BLOBTAIL_CONFIG, or leave it out for the defaults"
	var names []string
	for _, form := range []string{"*.yaml", "*.yml"} {
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), form)) // the patterns are well formed
		for _, file := range files {
			names = append(names, filepath.Base(file))
		}
	}
	if near := spelling.Near(filepath.Base(path), names); near != "" {
		fix = "there is " + filepath.Join(filepath.Dir(path), near)
	}
	return fmt.Errorf("configuration %s: there is no such file; %s", where, fix)
}

// explain returns the error of the decoder for a file: in one line with the key and its fix
// if the mistake is a key or a value, else with the lines around it. Lines around a key may
// hold a password.
func explain(text []byte, err error) error {
	if file, perr := parser.ParseBytes(text, 0); perr == nil {
		for _, doc := range file.Docs {
			if mistake := findMistake(doc.Body, reflect.TypeFor[Config](), ""); mistake != nil {
				return mistake
			}
		}
	}
	return errors.New(yamltext.Error(err, true))
}

// findMistake returns the first mistake in the node of a type: a key that does not exist, or
// a value that cannot be. path is the key of the node, "" for the file.
func findMistake(node ast.Node, of reflect.Type, path string) error {
	switch n := node.(type) {
	case nil, *ast.NullNode, *ast.AliasNode:
		return nil
	case *ast.AnchorNode:
		return findMistake(n.Value, of, path)
	case *ast.TagNode:
		return findMistake(n.Value, of, path)
	}
	value, scalar := node.(ast.ScalarNode)
	if read, ok := reflect.New(of).Interface().(encoding.TextUnmarshaler); ok && scalar {
		if err := read.UnmarshalText([]byte(fmt.Sprint(value.GetValue()))); err != nil {
			return fmt.Errorf("line %d: %s: %w", line(node), path, err)
		}
		return nil
	} else if ok {
		return wrongKind(node, path, "one value")
	}
	switch of.Kind() {
	case reflect.Struct:
		entries, ok := node.(ast.MapNode)
		if !ok {
			return wrongKind(node, path, "the keys "+strings.Join(keysOf(of), ", "))
		}
		return findInSection(entries.MapRange(), of, path)
	case reflect.Map:
		return findInMap(node, of, path)
	case reflect.Slice:
		list, ok := node.(*ast.SequenceNode)
		if entries, one := node.(ast.MapNode); one && of == reflect.TypeFor[Fields]() {
			return findInSection(entries.MapRange(), of.Elem(), path)
		}
		if !ok {
			return wrongKind(node, path, "a list")
		}
		for i, item := range list.Values {
			if err := findMistake(item, of.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Bool:
		if _, ok := node.(*ast.BoolNode); !ok {
			return wrongKind(node, path, "true or false")
		}
	case reflect.Float64:
		_, whole := node.(*ast.IntegerNode)
		if _, ok := node.(*ast.FloatNode); !ok && !whole {
			return wrongKind(node, path, "a number")
		}
	case reflect.Int:
		if _, ok := node.(*ast.IntegerNode); !ok {
			return wrongKind(node, path, "a whole number")
		}
	default:
		if !scalar {
			return wrongKind(node, path, "one value")
		}
	}
	return nil
}

// findInMap returns the first mistake in values by names of any kind.
func findInMap(node ast.Node, of reflect.Type, path string) (err error) {
	entries, ok := node.(ast.MapNode)
	if !ok {
		return wrongKind(node, path, "names with their values")
	}
	for each := entries.MapRange(); each.Next() && err == nil; {
		err = findMistake(each.Value(), of.Elem(), below(path, each.Key().GetToken().Value))
	}
	return err
}

// findInSection returns the first mistake in the entries of a section.
func findInSection(entries *ast.MapNodeIter, of reflect.Type, path string) error {
	for entries.Next() {
		key := entries.Key()
		if key.IsMergeKey() {
			continue
		}
		name := key.GetToken().Value
		field, ok := fieldOf(of, name)
		if !ok {
			return fmt.Errorf("line %d: there is no key %s; %s", line(key), below(path, name), meant(name, of, path))
		}
		if err := findMistake(entries.Value(), field.Type, below(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// meant says which key was probably meant by a name that the section at path does not have.
func meant(name string, section reflect.Type, path string) string {
	keys, wanted := keysOf(section), strings.ReplaceAll(strings.ToLower(name), "_", "-")
	var elsewhere []string
	for _, key := range allKeys(reflect.TypeFor[Config](), "") {
		if flag := strings.ReplaceAll(key, ".", "-"); wanted == key || wanted == flag {
			return "there is " + key
		}
		if wanted == key[strings.LastIndexByte(key, '.')+1:] {
			elsewhere = append(elsewhere, key)
		}
	}
	if near := spelling.Near(wanted, keys); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	switch {
	case len(elsewhere) > 0:
		return "there is " + strings.Join(elsewhere, " and ")
	case path == "":
		return "the file may have " + strings.Join(keys, ", ")
	}
	return path + " may have " + strings.Join(keys, ", ")
}

// wrongKind is the error for a list, a section or one value where another of these belongs.
// It does not show the value, which may be a URL with a password.
func wrongKind(node ast.Node, path, want string) error {
	if path == "" {
		return fmt.Errorf("line %d: want %s", line(node), want)
	}
	return fmt.Errorf("line %d: %s: want %s", line(node), path, want)
}

func line(node ast.Node) int { return node.GetToken().Position.Line }

// below is the full name of a key in the section at path.
func below(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// fieldOf returns the field of a section that has a key.
func fieldOf(section reflect.Type, key string) (reflect.StructField, bool) {
	i := slices.IndexFunc(reflect.VisibleFields(section), func(f reflect.StructField) bool { return keyOf(f) == key })
	if i < 0 || key == "" {
		return reflect.StructField{}, false
	}
	return reflect.VisibleFields(section)[i], true
}

// keysOf returns the keys of a section.
func keysOf(section reflect.Type) (keys []string) {
	for _, f := range reflect.VisibleFields(section) {
		if key := keyOf(f); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// keyOf returns the key of a field in the file, "" for none.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// allKeys returns the full names of all keys below a type that are no sections.
func allKeys(of reflect.Type, path string) (keys []string) {
	text := reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	switch {
	case of.Kind() == reflect.Struct && !text:
		for _, f := range reflect.VisibleFields(of) {
			if key := keyOf(f); key != "" {
				keys = append(keys, allKeys(f.Type, below(path, key))...)
			}
		}
		return keys
	case of.Kind() == reflect.Slice:
		return allKeys(of.Elem(), path+"[]")
	}
	return []string{path}
}
