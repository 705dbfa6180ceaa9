package dashboard

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

// sortedBy returns members in the order of a column. Equal ones stay in their order.
func sortedBy(c *column, members []*entry, descending bool) []*entry {
	type placed struct {
		key   string
		place int
	}
	places := make([]placed, len(members))
	for i, e := range members { // each value is computed once: some change with the time
		places[i] = placed{c.key(e), i}
	}
	slices.SortFunc(places, func(a, b placed) int {
		by := strings.Compare(a.key, b.key)
		if descending {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.place, b.place))
	})
	sorted := make([]*entry, len(members))
	for i := range places {
		sorted[i] = members[places[i].place]
	}
	return sorted
}

// latestFirst returns the key of a time: the key of a later time comes first.
func latestFirst(t time.Time) string {
	var key [12]byte
	// the sign bit would put the years before 1970 last
	binary.BigEndian.PutUint64(key[:], ^(uint64(t.Unix()) ^ 1<<63))
	binary.BigEndian.PutUint32(key[8:], ^uint32(t.Nanosecond()))
	return string(key[:])
}

// naturalKey returns the key of a text: bytes for bytes the order of compareVersions.
func naturalKey(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	key := make([]byte, 0, len(text)+12)
	for text != "" {
		n := digits(text)
		if n == 0 {
			key, text = append(key, text[0]), text[1:]
			continue
		}
		number := strings.TrimLeft(text[:n], "0")
		// a digit before the length keeps the order of numbers and other characters
		key = append(binary.BigEndian.AppendUint16(append(key, '0'), uint16(min(len(number), math.MaxUint16))), number...)
		text = text[n:]
	}
	return string(key)
}

// compareVersions compares texts, the numbers in versions by their value.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		left, right := digits(a), digits(b)
		if left > 0 && right > 0 {
			// without leading zeroes, the longer number is the greater one
			x, y := strings.TrimLeft(a[:left], "0"), strings.TrimLeft(b[:right], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[left:], b[right:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns the number of digits at the start of a text.
func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}
