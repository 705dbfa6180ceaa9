package yamlcheck

import (
	"bytes"
	"slices"
)

// Upper bounds of the nodes from one character. "[", "{", "?" and ":" may begin a collection, a key
// and a value; "," and "-" an entry with a value.
const (
	perCollection = 3
	perEntry      = 2
)

// Nodes returns an upper bound for the nodes of a parsed document. The text of comments, of block
// scalars, and of quoted scalars that end on their line does not count. It counts where an earlier
// line leaves open whether the text lies within something else.
func Nodes(document []byte) int {
	c := counter{unsure: unusual(document), block: -1, nodes: perCollection}
	for line := range bytes.Lines(document) {
		c.line(bytes.TrimRight(line, "\r\n"))
	}
	return c.nodes
}

// unusual reports whether the lines of a document may not be the lines between line feeds, because
// of its encoding or other line breaks.
func unusual(document []byte) bool {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\u0085", "\u2028", "\u2029", "\x00"} {
		if bytes.Contains(document, []byte(mark)) {
			return true
		}
	}
	return bytes.Count(document, []byte("\r")) != bytes.Count(document, []byte("\r\n"))
}

type counter struct {
	nodes int
	// unsure is set if the next line may begin within a quoted scalar or a flow collection. Then every
	// character counts.
	unsure bool
	// block is the least indentation of the lines in the current block scalar; -1 outside of one.
	block int
}

func (c *counter) line(line []byte) {
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	blank := len(bytes.TrimRight(line, " \t")) == 0
	switch {
	case c.unsure:
		c.nodes += count(line, true)
		return
	case blank, c.block >= 0 && indent >= c.block, line[indent] == '#':
		return
	}
	c.block = -1
	column, value := entry(line)
	flow := bytes.ContainsAny(line, "[]{}")
	switch rest := line[value:]; {
	case column >= 0 && startsBlock(rest):
		c.block = column + 1
		line, flow = line[:value], false
	case endsQuoted(rest):
		line, flow = line[:value], false
	case opensQuote(line), flow && !closesAll(line):
		c.unsure = true
	}
	c.nodes += count(line, flow || c.unsure)
}

// count sums up the possible nodes of a line. Outside of flow collections, "-", "?" and ":" count
// only before a blank.
func count(line []byte, flow bool) int {
	n := 0
	for i, b := range line {
		apart := flow || i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t'
		switch {
		case b == '[', b == '{', apart && (b == ':' || b == '?'):
			n += perCollection
		case b == ',', apart && b == '-':
			n += perEntry
		}
	}
	return n
}

// entry returns the column of the innermost collection that a line begins or continues, by a dash
// or a plain key, or -1. It also returns the position of the value after it.
func entry(line []byte) (column, value int) {
	column = -1
	at := skip(line, 0, isSpace)
	for at+1 < len(line) && line[at] == '-' && line[at+1] == ' ' {
		column, at = at, skip(line, at+1, isSpace)
	}
	end := skip(line, at, isPlain)
	if end > at && line[at] != '-' && end+1 < len(line) && line[end] == ':' && line[end+1] == ' ' {
		column, at = at, skip(line, end+1, isSpace)
	}
	return column, at
}

func skip(line []byte, at int, is func(byte) bool) int {
	for at < len(line) && is(line[at]) {
		at++
	}
	return at
}

func isSpace(b byte) bool { return b == ' ' }

func isAlphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// isPlain reports whether a character may occur anywhere in a plain key without a special meaning.
func isPlain(b byte) bool { return isAlphanumeric(b) || b == '.' || b == '_' || b == '/' || b == '-' }

// startsBlock reports whether a value is the first line of a block scalar.
func startsBlock(value []byte) bool {
	if len(value) == 0 || value[0] != '|' && value[0] != '>' {
		return false
	}
	rest := bytes.TrimLeft(value[1:], "+-123456789")
	return len(value)-len(rest) <= 3 && isEnd(rest)
}

// isEnd reports whether the rest of a line is empty or a comment.
func isEnd(rest []byte) bool {
	text := bytes.TrimLeft(rest, " \t")
	return len(text) == 0 || len(text) < len(rest) && text[0] == '#'
}

// endsQuoted reports whether a value is a quoted scalar that ends on its line.
func endsQuoted(value []byte) bool {
	if len(value) == 0 || value[0] != '"' && value[0] != '\'' {
		return false
	}
	quote := value[0]
	for i := 1; i < len(value); i++ {
		switch {
		case quote == '"' && value[i] == '\\':
			i++
		case value[i] != quote:
		case quote == '\'' && i+1 < len(value) && value[i+1] == quote:
			i++
		default:
			return isEnd(value[i+1:])
		}
	}
	return false
}

// opensQuote reports whether a quoted scalar may begin in a line. A quote after a letter or a digit
// begins none.
func opensQuote(line []byte) bool {
	for i, b := range line {
		if (b == '"' || b == '\'') && (i == 0 || !isAlphanumeric(line[i-1])) {
			return true
		}
	}
	return false
}

// closesAll reports whether the flow collections of a line without quotes end in it.
func closesAll(line []byte) bool {
	depth := 0
	for _, b := range line {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0 && !slices.Contains(line, '#')
}
