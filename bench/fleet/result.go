package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// result is the measurement of a fleet of one size.
type result struct {
	Members  int       `json:"members"`
	Kind     string    `json:"kind"`
	Replicas int       `json:"replicas"`
	Begun    time.Time `json:"begun"`
	Figures  []figure  `json:"figures"`
	Notes    []string  `json:"notes"`
}

// figure is one number.
type figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r *result) add(what string, value float64, unit string) {
	fmt.Fprintf(os.Stderr, "%s: %s = %.4g %s\n", time.Now().Format(time.TimeOnly), what, value, unit)
	r.Figures = append(r.Figures, figure{what, value, unit})
}

func (r *result) value(what string) float64 {
	for _, f := range r.Figures {
		if f.What == what {
			return f.Value
		}
	}
	return 0
}

// table returns a Markdown table with a column for each size, and the growth from the first size to
// the last.
func table(results []*result) string {
	var text strings.Builder
	text.WriteString("| what |")
	for _, r := range results {
		fmt.Fprintf(&text, " %d %s |", r.Members, r.Kind)
	}
	grows := len(results) > 1
	if grows {
		text.WriteString(" growth |")
	}
	text.WriteString("\n|" + strings.Repeat(" --- |", len(results)+1))
	if grows {
		text.WriteString(" --- |")
	}
	first, last := results[0], results[len(results)-1]
	for _, f := range first.Figures {
		fmt.Fprintf(&text, "\n| %s |", f.What)
		for _, r := range results {
			fmt.Fprintf(&text, " %s %s |", short(r.value(f.What)), f.Unit)
		}
		if grows && f.Value != 0 {
			fmt.Fprintf(&text, " %.2f× |", last.value(f.What)/f.Value)
		} else if grows {
			text.WriteString(" |")
		}
	}
	return text.String() + "\n"
}

// short formats a number with three significant digits.
func short(v float64) string {
	switch {
	case v >= 100 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// write prints the results so far, and writes them into the directory if there is one.
func write(o options, results []*result) error {
	text := table(results)
	if results[len(results)-1].Members == o.sizes[len(o.sizes)-1] {
		fmt.Print(text)
	}
	if o.out == "" {
		return nil
	}
	whole, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	files := map[string]string{"results.md": text, "results.json": string(whole) + "\n"}
	for name, what := range plotted {
		files[name+".svg"] = plot(what, results)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(o.out, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
