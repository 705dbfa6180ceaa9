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

// reads are the names of the functions with which tests read objects.
var reads = []string{"Get", "get", "remoteGet", "List"}

// fatalReads lists the reads of a wait that end the test when they fail. What is waited for can
// be made by another program, so a read that finds nothing is one more reason to wait.
func fatalReads(f goFile) (faults []string) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		wait, called := node.(*ast.CallExpr)
		if !called || !strings.HasPrefix(strings.ToLower(calledName(wait)), "eventually") {
			return true
		}
		for _, argument := range wait.Args {
			literal, written := argument.(*ast.FuncLit)
			if !written {
				continue
			}
			ast.Inspect(literal.Body, func(inner ast.Node) bool {
				check, called := inner.(*ast.CallExpr)
				if !called || calledName(check) != "check" || len(check.Args) != 1 {
					return true
				}
				if read, called := check.Args[0].(*ast.CallExpr); called && slices.Contains(reads, calledName(read)) {
					faults = append(faults, fmt.Sprintf("%s:%d: a read within a wait ends the test: return its error",
						f.name, f.files.Position(check.Pos()).Line))
				}
				return true
			})
		}
		return true
	})
	return faults
}

// calledName returns the last part of the name of what a call calls.
func calledName(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		return function.Sel.Name
	case *ast.Ident:
		return function.Name
	}
	return ""
}

func TestWaitsReturnTheErrorsOfTheirReads(t *testing.T) {
	for _, f := range testFiles(t) {
		for _, fault := range fatalReads(f) {
			t.Error(fault)
		}
	}
}

func TestFatalReadsOfWaitsAreFound(t *testing.T) {
	for source, want := range map[string]int{
		`f.eventually("it is there", func() error { f.check(f.get(o)); return nil })`:                              1,
		`testkube.Eventually(t, "it is there", func() error { r.check(r.kube.Get(ctx, key, o)); return nil })`:     1,
		`f.eventually("it is there", func() error { if f.check(f.get(o)); o.late() { return late }; return nil })`: 1,
		`f.eventually("it is there", func() error { return f.get(o) })`:                                            0,
		`f.eventually("it is there", func() error { f.check(json.Unmarshal(data, o)); return nil })`:               0,
		`f.check(f.get(o))`: 0,
	} {
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, "p.go", "package p\n\nfunc f() {\n"+source+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fatalReads(goFile{name: "p.go", syntax: syntax, files: files}); len(got) != want {
			t.Errorf("%d faults, want %d: %v\n%s", len(got), want, got, source)
		}
	}
}
