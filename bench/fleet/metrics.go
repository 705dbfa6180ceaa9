package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// sample is one line of a metrics page.
type sample struct {
	name   string
	labels string
	value  float64
}

// samples is a metrics page.
type samples []sample

// readSamples reads the text format, as written by a Go program.
func readSamples(from io.Reader) (samples, error) {
	var parsed samples
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metric %q: %w", line, err)
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		parsed = append(parsed, sample{name, labels, value})
	}
	return parsed, lines.Err()
}

// sum adds the values of a metric with all of the texts in its labels.
func (s samples) sum(name string, labels ...string) (sum float64) {
	for _, one := range s {
		if one.name == name && containsAll(one.labels, labels) {
			sum += one.value
		}
	}
	return sum
}

// by adds the values of a metric by the key of its labels; it skips an empty key.
func (s samples) by(name string, key func(labels func(string) string) string) map[string]float64 {
	sums := map[string]float64{}
	for _, one := range s {
		if one.name != name {
			continue
		}
		if of := key(func(label string) string { return labelOf(one.labels, label) }); of != "" {
			sums[of] += one.value
		}
	}
	return sums
}

func labelOf(labels, name string) string {
	for _, before := range []string{",", ""} {
		if _, rest, found := strings.Cut(labels, before+name+`="`); found {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
