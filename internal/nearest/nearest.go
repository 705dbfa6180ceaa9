// Package nearest finds the correct name for a misspelled one.
//
// Its invariant: it is pure.
package nearest

import "strings"

// Of returns the most similar of some names, or "" if none is similar. A name may have a prefix, as
// in kind/name.
func Of(name string, names []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, other := range names {
		bare := other[strings.LastIndex(other, "/")+1:]
		if distance := min(editDistance(name, other), editDistance(name, bare)); distance < least {
			best, least = other, distance
		}
	}
	return best
}

// Question returns a question with the most similar name, after a semicolon; "" if none is similar.
func Question(name string, names []string) string {
	if best := Of(name, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

// editDistance returns the Levenshtein distance of two words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
