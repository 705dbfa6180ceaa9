package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commentSentences lists the sentences of a comment. Directives, markers and code in it are none.
func commentSentences(f goFile, group *ast.CommentGroup) (all []sentence) {
	var paragraph []string
	begin := 0
	end := func() {
		all = append(all, sentencesOf(plainText(strings.Join(paragraph, "\n")), begin)...)
		paragraph = nil
	}
	for _, c := range group.List {
		text, isLine := strings.CutPrefix(c.Text, "//")
		bare := strings.TrimSpace(text)
		switch {
		case !isLine, bare == "", strings.HasPrefix(text, "\t"), strings.HasPrefix(text, "   "), directive.MatchString(text):
			end()
			continue
		case listItem.MatchString(text), strings.HasPrefix(bare, "# "):
			end()
		}
		if len(paragraph) == 0 {
			begin = f.files.Position(c.Pos()).Line
		}
		paragraph = append(paragraph, strings.TrimLeft(listItem.ReplaceAllString(text, ""), "# "))
	}
	end()
	return all
}

// directive matches comments for tools: //go:build, //nolint:x, // +kubebuilder:x.
var directive = regexp.MustCompile(`^(?:[a-z]+:?[a-z]+\S*\b:?\S|nolint| ?\+[a-zA-Z])`)

// namedDoc is the comment of a declaration, and the names with which it may begin.
type namedDoc struct {
	doc   *ast.CommentGroup
	names []string
}

// declarationDocs lists the comments of the declarations of a file. A comment of a group has no
// name.
func declarationDocs(f goFile) (all []namedDoc) {
	add := func(doc *ast.CommentGroup, names ...string) {
		if doc != nil {
			all = append(all, namedDoc{doc, names})
		}
	}
	if f.syntax.Name.Name != "main" {
		add(f.syntax.Doc, "Package "+f.syntax.Name.Name)
	}
	for _, declared := range f.syntax.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			add(d.Doc, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				doc, names := specDoc(spec)
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				add(doc, names...)
			}
		}
	}
	return all
}

func specDoc(spec ast.Spec) (doc *ast.CommentGroup, names []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Doc, []string{s.Name.Name}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names = append(names, name.Name)
		}
		return s.Doc, names
	}
	return nil, nil
}

// beginsWith reports whether a comment begins with one of the names, or has no words.
func (d namedDoc) beginsWith() bool {
	text := strings.TrimSpace(d.doc.Text())
	return text == "" || slices.ContainsFunc(d.names, func(name string) bool {
		rest, found := strings.CutPrefix(text, name)
		return name == "_" || found && !wordStart.MatchString(rest)
	})
}

var wordStart = regexp.MustCompile(`^[\pL\pN_]`)

// withoutName replaces the name at the beginning of a comment: a declaration may have
// a name that is out.
func withoutName(s sentence, names []string) sentence {
	for _, name := range names {
		if rest, found := strings.CutPrefix(s.text, name); found && !wordStart.MatchString(rest) {
			s.text = "x" + rest
		}
	}
	return s
}

// namesOf lists the names of the declarations and fields of a file by their comments.
func namesOf(f goFile) map[*ast.CommentGroup][]string {
	names := map[*ast.CommentGroup][]string{}
	for _, d := range declarationDocs(f) {
		names[d.doc] = d.names
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if field, isField := node.(*ast.Field); isField && field.Doc != nil {
			for _, name := range field.Names {
				names[field.Doc] = append(names[field.Doc], name.Name)
			}
		}
		return true
	})
	return names
}

// commentFaults lists the faults in the comments of a file, and returns their sentences.
func commentFaults(f goFile) (faults []string, sentences []sentence) {
	names := namesOf(f)
	for _, group := range f.syntax.Comments {
		read := commentSentences(f, group)
		for i := range read {
			read[i] = withoutName(read[i], names[group])
		}
		sentences = append(sentences, read...)
	}
	faults = proseFaults(f.name, sentences)
	for _, d := range declarationDocs(f) {
		if !d.beginsWith() {
			faults = append(faults, fmt.Sprintf("%s:%d: the comment of a declaration begins with its name: write %s and a verb: %.80s",
				f.name, f.files.Position(d.doc.Pos()).Line, strings.Join(d.names, " or "), d.doc.Text()))
		}
	}
	return faults, sentences
}

func TestCommentsArePlainEnglish(t *testing.T) {
	faults, sentences := map[string][]string{}, map[string][]sentence{}
	for _, f := range goFiles(t) {
		if isGenerated(f.data) {
			continue
		}
		wrong, read := commentFaults(f)
		faults[f.dir()] = append(faults[f.dir()], wrong...)
		sentences[f.dir()] = append(sentences[f.dir()], read...)
	}
	for dir := range sentences {
		relative, whole := relativeWords(sentences[dir])
		faults[dir] = append(faults[dir], relativeFaults(dir, sentences[dir])...)
		t.Logf("%s: %d relative words per 100 sentences, %d faults", dir, relative*100/max(whole, 1), len(faults[dir]))
		for _, fault := range faults[dir] {
			t.Error(fault)
		}
	}
}

func TestCommentFaultsAreFound(t *testing.T) {
	parse := func(source string) goFile {
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, "p.go", source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return goFile{name: "p.go", data: []byte(source), syntax: syntax, files: files}
	}
	for source, want := range map[string]string{
		"package p\n\n// Tells a caller.\nfunc tell() {}\n": "p.go:3: the comment of a declaration begins with its " +
			"name: write tell",
		"package p\n\n// The times.\nconst (\n\t// How long.\n\ta = 1\n)\n": "p.go:5: the comment of a declaration begins with its " +
			"name: write a",
		"// Helps.\npackage p\n":                                                     "write Package p",
		"package p\n\n// tell says whether x.\nfunc tell() {}\n":                     `p.go:3: "says whether" is out`,
		"package p\n\n// tell calls\n// x. It is that of x.\nfunc tell() {}\n":       `p.go:4: "that of" is out`,
		"package p\n\n// a is " + strings.Repeat("word ", 26) + "\nvar a int\n":      "28 words in a sentence",
		"package p\n\nfunc f() {\n\tg() // somebody calls\n}\n":                      `p.go:4: "somebody" is out`,
		"package p\n\ntype s struct {\n\t// f says whether it is so.\n\tf bool\n}\n": `p.go:4: "says whether" is out`,
	} {
		if faults, _ := commentFaults(parse(source)); !strings.Contains(strings.Join(faults, "\n"), want) {
			t.Errorf("want %s, got %q for %q", want, faults, source)
		}
	}
	for _, source := range []string{
		"package p\n\n// beat sends a heartbeat.\nfunc beat() {}\n\ntype s struct {\n\t// told is a field.\n\ttold int\n}\n",
		"package p\n\n//nolint:gocyclo // he knows\nfunc f() {}\n", "package p\n\n// f calls:\n//\n//\tsomebody()\nfunc f() {}\n",
		"package p\n\n// +kubebuilder:rbac:groups=somebody\n\n// a and b are bounds.\nconst a, b = 1, 2\n",
		"package p\n\n//go:build somebody\n\n// The bounds.\nconst (\n\ta = 1\n)\n",
	} {
		if faults, _ := commentFaults(parse(source)); len(faults) > 0 {
			t.Errorf("%q: %v", source, faults)
		}
	}
}
