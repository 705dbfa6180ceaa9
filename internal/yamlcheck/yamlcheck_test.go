package yamlcheck

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
)

// parsed returns how many nodes the parser makes of the first document, and false if it is no YAML.
func parsed(document string) (int, bool) {
	var root yaml.Node
	if err := yaml.NewDecoder(strings.NewReader(document)).Decode(&root); err != nil {
		return 0, false
	}
	var count func(*yaml.Node) int
	count = func(n *yaml.Node) int {
		sum := 1
		for _, child := range n.Content {
			sum += count(child)
		}
		return sum
	}
	return count(&root), true
}

// TestNodesIsNeverLessThanWhatTheParserMakes tries random documents, most of them of
// parts that hide others.
func TestNodesIsNeverLessThanWhatTheParserMakes(t *testing.T) {
	parts := []string{
		"a", "b: ", "key:\n", "- ", "-\n", "-\t", "? ", "?\n", ": ", ":", ",", "[", "]", "{", "}", "[a, b]", "{a: b}", "''", "\"\"", "\"", "'",
		"it's", "\\\"", "\\",
		"|\n", ">-\n", "|2\n", "c: |\n", "d: >+ # e\n", "- |\n", "- f: |\n", "#", " # x\n", "\n", "\n", "\n ", "\n  ", "\n   ", "\n    ", "\n\n",
		"&g ", "*g", "!h ", "!!str ",
		"---\n", "--- ", "...\n", "\t", "\r\n", "\r", "\u0085", "\u2028", "%i\n",
		"ü", "\"j\" ", "'k': ", "\"l\n m\"", " \"n\" # o\n", "p: 'q\n", "x: \"y\" z\n",
	}
	random, good := rand.New(rand.NewPCG(1, 2)), 0
	for range 200_000 {
		var b strings.Builder
		for range 1 + random.IntN(14) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		made, ok := parsed(b.String())
		if !ok {
			continue
		}
		good++
		if bound := Nodes([]byte(b.String())); bound < made {
			t.Fatalf("%q has %d nodes, and the bound is %d", b.String(), made, bound)
		}
	}
	if good < 10_000 {
		t.Errorf("only %d of the documents were YAML", good)
	}
}

func TestNodes(t *testing.T) {
	const n = 50_000
	for name, row := range map[string]struct {
		document string
		most     int // the bound of what is no more than this is no more than this
	}{
		"brackets":         {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), 3*9000 + 3},
		"dashes":           {strings.Repeat("-\n", n), 2*n + 3},
		"keys":             {strings.Repeat("a:\n", n), 3*n + 3},
		"complex keys":     {strings.Repeat("?\n", n), 3*n + 3},
		"small scalars":    {"[" + strings.Repeat("a,", n) + "]", 2*n + 6},
		"small mappings":   {"[" + strings.Repeat("{},", n) + "]", 5*n + 6},
		"aliases":          {"a: &a b\nc: [" + strings.Repeat("*a,", n) + "]", 2*n + 12},
		"a text":           {"data:\n  a: |\n" + strings.Repeat("    - {\"a\": [b, c], ...}\n", n), 10},
		"a text in a list": {"- a: b\n  c: >-  # a text\n" + strings.Repeat("    - ,,,\n\n", n), 15},
		"a text in quotes on a line": {"a: \"" + strings.Repeat("{\\\"a\\\": 1},", n) + "\"\nb: '" +
			strings.Repeat("a, ''b'', ", n) + "' # c", 10},
		"words":                                 {"a: " + strings.Repeat("that's x-y at http://a.b:80 ", n), 10},
		"a text in which a text is":             {"a b: |\n  c: |\n" + strings.Repeat("    - - -\n", n), 12},
		"a list after a text":                   {"a: |\n  b\nc:\n" + strings.Repeat("- x\n", n), 2*n + 12},
		"a list that a text pretends":           {"a: \"\n  b: |\n    \"\nc:\n" + strings.Repeat("    - x\n", n), 2*n + 15},
		"a text that a key in quotes pretends":  {"     ? \"\n b: |\n       \"\n     : [" + strings.Repeat("a,", n) + "]\n", 2*n + 20},
		"a list that a comment pretends to end": {"a: [ #]\n  b\n  \"" + strings.Repeat("c,", n) + "c\"\n  ]\n", 2*n + 20},
	} {
		bound := Nodes([]byte(row.document))
		if made, ok := parsed(row.document); ok && made > bound || bound > row.most {
			t.Errorf("%s: the bound is %d, want from %d to %d", name, bound, made, row.most)
		}
	}
}

func TestCheck(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.Repeat(fmt.Sprintf("*%c, ", 'a'+i), 10))
	}
	for name, row := range map[string]struct{ text, want string }{
		"a chart's values": {"image:\n  tag: &v 1.0\nsidecar:\n  tag: *v\n", ""},
		"no YAML":          {"a: [&b\n*c", ""},
		"a text of 4 MiB":  {"a: |\n" + strings.Repeat("  {a, b, c, d}\n", 4<<20/15), ""},
		"many documents":   {strings.Repeat("---\n- a\n- b\n", 200_000), ""},
		"a document of many values": {"a: b\n---\n" + strings.Repeat("-\n", 150_000),
			"the document that begins at line 2: it has up to 300005 values"},
		"aliases of aliases": {bomb, "its aliases make it larger than 16 MiB"},
		"many aliases of a text": {"a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n",
			"its aliases make it larger than 16 MiB"},
		"an alias within what it names":       {"a: &a [*a]\n", "its aliases make it larger than 16 MiB"},
		"an alias in a later document":        {"a: b\n---\n" + bomb, "the document that begins at line 2: its aliases"},
		"aliases of what is merged elsewhere": {"a: &a {b: c}\n" + "d:\n" + strings.Repeat("- <<: *a\n", 10_000), ""},
	} {
		err := Check([]byte(row.text))
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

func TestDocumentsAreTheWholeText(t *testing.T) {
	text := []byte("# a\n---\nb: 1\n...\n%YAML 1.1\n---\nc\n--- d\n")
	var all [][]byte
	for document := range Documents(text) {
		all = append(all, document)
	}
	if !bytes.Equal(bytes.Join(all, nil), text) || len(all) != 3 {
		t.Errorf("the documents are %q", all)
	}
}
