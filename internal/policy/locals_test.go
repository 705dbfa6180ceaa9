package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// maxNamelessLines is the longest scope of a local with one of the vagueNames.
const maxNamelessLines = 10

// vagueNames are words that say nothing about the value of a local.
var vagueNames = []string{"is", "has", "at", "of", "in", "by", "may", "said", "known", "asked", "made", "there", "all"}

// vagueLocals lists the parameters, results and variables of a file with a vague name in a long
// scope.
func vagueLocals(f goFile) (faults []string) {
	var scopes []ast.Node
	add := func(scope ast.Node, names ...ast.Expr) {
		for _, expression := range names {
			name, is := expression.(*ast.Ident)
			if !is || !slices.Contains(vagueNames, name.Name) {
				continue
			}
			begin := f.files.Position(name.Pos()).Line
			if size := f.files.Position(scope.End()).Line - begin; size > maxNamelessLines {
				faults = append(faults, fmt.Sprintf("%s:%d: the local %s lives for %d lines, want at most %d: name its value",
					f.name, begin, name.Name, size, maxNamelessLines))
			}
		}
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if node == nil {
			scopes = scopes[:len(scopes)-1]
			return true
		}
		scope := innermost(scopes)
		scopes = append(scopes, node)
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(scope, n.Lhs...)
			}
		case *ast.RangeStmt:
			add(n, n.Key, n.Value)
		case *ast.ValueSpec:
			if scope != nil {
				for _, name := range n.Names {
					add(scope, name)
				}
			}
		case *ast.Field:
			if function := functionOf(scopes); function != nil {
				for _, name := range n.Names {
					add(function, name)
				}
			}
		}
		return true
	})
	return faults
}

// innermost returns the innermost node with a scope of its own; nil outside of functions.
func innermost(nodes []ast.Node) ast.Node {
	for _, node := range slices.Backward(nodes) {
		switch node.(type) {
		case *ast.BlockStmt, *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.CaseClause, *ast.CommClause:
			return node
		}
	}
	return nil
}

// functionOf returns the function of a parameter or result, the last of the nodes; nil for the
// field of a struct, and for a function type.
func functionOf(nodes []ast.Node) ast.Node {
	parent := func(distance int) ast.Node { return nodes[max(len(nodes)-1-distance, 0)] }
	if _, isList := parent(1).(*ast.FieldList); !isList {
		return nil
	}
	switch parent(2).(type) {
	case *ast.FuncDecl: // a receiver
		return parent(2)
	case *ast.FuncType:
		switch parent(3).(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return parent(3)
		}
	}
	return nil
}

func TestLocalsHaveNames(t *testing.T) {
	for _, f := range goFiles(t) {
		if isGenerated(f.data) {
			continue
		}
		for _, fault := range vagueLocals(f) {
			t.Error(fault)
		}
	}
}

func TestVagueLocalsAreFound(t *testing.T) {
	long := strings.Repeat("\tg()\n", maxNamelessLines+1)
	for source, want := range map[string]int{
		"func f(of int) {\n" + long + "}":                                 1,
		"func f() (all []int) {\n" + long + "\treturn\n}":                 1,
		"func f() {\n\tis := 1\n" + long + "}":                            1,
		"func f() {\n\tvar at int\n" + long + "}":                         1,
		"func f() {\n\tfor _, by := range x {\n" + long + "}\n}":          1,
		"func f() {\n\tif is := 1; is > 0 {\n\t\tg()\n\t}\n" + long + "}": 0,
		"func f(of int) { g() }":                                          0,
		"type f struct{ of int }":                                         0,
		"var of = 1\n\nfunc f() {\n" + long + "}":                         0,
		"func f(name int) {\n" + long + "}":                               0,
	} {
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, "p.go", "package p\n\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := vagueLocals(goFile{name: "p.go", syntax: syntax, files: files}); len(got) != want {
			t.Errorf("%d faults, want %d: %v\n%s", len(got), want, got, source)
		}
	}
}
