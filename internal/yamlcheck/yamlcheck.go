// Package yamlcheck bounds the cost of YAML before a parser builds a tree of it.
//
// Its invariant: Nodes never returns less than the number of nodes from the parser. No maintained
// parser in Go reports events, and the tree of 1 MiB takes up to 170 MiB. The package therefore
// counts the nodes without a parser.
package yamlcheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	yaml "go.yaml.in/yaml/v3"
)

const (
	// MaxNodes is the maximum number of values in a document. Its tree takes up to 60 MiB; the largest
	// CustomResourceDefinitions in use have 60,000 values.
	MaxNodes = 200_000
	// MaxExpanded is the maximum number of bytes in a document with its aliases replaced by their
	// anchors' content.
	MaxExpanded = 16 << 20
)

// Check returns an error if a parser should not read the text, which may have several documents. It
// does not check whether the text is YAML.
func Check(text []byte) error {
	before := 0
	for document := range Documents(text) {
		if err := check(document); err != nil {
			return fmt.Errorf("the document that begins at line %d: %w", before+1, err)
		}
		before += bytes.Count(document, []byte("\n"))
	}
	return nil
}

func check(document []byte) error {
	if err := CheckNodes(document); err != nil {
		return err
	}
	if !bytes.ContainsRune(document, '&') || !bytes.ContainsRune(document, '*') {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	for {
		var root yaml.Node
		if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return nil //nolint:nilerr // the parser that needs the text reports the error
		}
		if err := CheckAliases(&root); err != nil {
			return err
		}
	}
}

// CheckNodes returns an error if a document may have more than MaxNodes nodes.
func CheckNodes(document []byte) error {
	if n := Nodes(document); n > MaxNodes {
		return fmt.Errorf("it has up to %d values, and a document may have %d: make it several documents", n, MaxNodes)
	}
	return nil
}

// CheckAliases returns an error if a document has more than MaxExpanded bytes with its aliases
// replaced, or if an alias lies within its own anchor.
func CheckAliases(root *yaml.Node) error {
	if size := expanded(root, map[*yaml.Node]int{}); size > MaxExpanded {
		return fmt.Errorf("its aliases make it larger than %d MiB: write what they name only where it is needed", MaxExpanded>>20)
	}
	return nil
}

// expanded returns the size of a node with its aliases replaced, but not much more than
// MaxExpanded. It measures the content of an anchor once. During the measurement the content counts
// as too large.
func expanded(n *yaml.Node, sizes map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if size, ok := sizes[n]; ok {
		return size
	}
	if n.Anchor != "" {
		sizes[n] = MaxExpanded + 1
	}
	size := len(n.Value) + 1
	for _, child := range n.Content {
		if size += expanded(child, sizes); size > MaxExpanded {
			break
		}
	}
	if n.Anchor != "" {
		sizes[n] = size
	}
	return size
}

// Documents yields the parts of a text that a parser reads as documents, with the lines that mark
// their begin.
func Documents(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin, offset, begun, ended := 0, 0, false, false
		for line := range bytes.Lines(text) {
			marks := bytes.HasPrefix(line, []byte("---"))
			if begun && (marks || ended) {
				if !yield(text[begin:offset]) {
					return
				}
				begin, begun = offset, false
			}
			ended = bytes.HasPrefix(line, []byte("..."))
			// Comments and directives belong to the next document.
			if rest := bytes.TrimSpace(line); marks || len(rest) > 0 && rest[0] != '#' && line[0] != '%' {
				begun = true
			}
			offset += len(line)
		}
		yield(text[begin:])
	}
}
