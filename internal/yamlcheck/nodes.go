package yamlcheck

import (
	"bytes"
	"slices"
)

// What a character may make nodes of: "[", "{", "?" and ":" a collection, a key and a value; ","
// and "-" an entry with a value.
const (
	perCollection = 3
	perEntry      = 2
)

// Nodes returns an upper bound of the nodes that a parser makes of a document. The text of block
// scalars, of quoted scalars that end on their line and of comments does not count, as long as no
// line before leaves open whether it lies within something else.
func Nodes(document []byte) int {
	c := counter{unsure: unusual(document), block: -1, nodes: perCollection}
	for line := range bytes.Lines(document) {
		c.line(bytes.TrimRight(line, "\r\n"))
	}
	return c.nodes
}

// unusual reports whether a document has line breaks or an encoding in which lines are others than
// those between line feeds.
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
	// unsure says that the next line may begin within a quoted scalar or a flow collection; then
	// every character counts.
	unsure bool
	// block is the column that the lines of the current block scalar are indented by at
	// least; -1 outside of one.
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

// count adds up what the characters of a line may make. Outside of flow collections "-", "?" and
// ":" need a blank after them.
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

// entry returns the column of the innermost collection that a line begins or goes on with, by a
// dash or a plain key, or -1, and where the value after it begins.
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

// isPlain reports whether a character may stand anywhere in a plain key without a
// meaning of its own.
func isPlain(b byte) bool { return isAlphanumeric(b) || b == '.' || b == '_' || b == '/' || b == '-' }

// startsBlock reports whether a value is the first line of a block scalar.
func startsBlock(value []byte) bool {
	if len(value) == 0 || value[0] != '|' && value[0] != '>' {
		return false
	}
	rest := bytes.TrimLeft(value[1:], "+-123456789")
	return len(value)-len(rest) <= 3 && isEnd(rest)
}

// isEnd reports whether what is left of a line is nothing or a comment.
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

// opensQuote reports whether a quoted scalar may begin in a line: a quote after a letter or
// a digit begins none.
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
