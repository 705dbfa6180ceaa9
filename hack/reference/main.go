// Command reference writes docs/reference: commands, values of charts, kinds, metrics.
//
// The same source gives the same pages, so make verify can compare them.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// page is one page of the reference: its path and its generator.
type page struct {
	name  string
	write func() (string, error)
}

func main() {
	if err := run("docs/reference"); err != nil {
		fmt.Fprintln(os.Stderr, "writing the reference:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	pages := []page{{"commands.md", commands}, {"values.md", values}, {"metrics.md", metrics}}
	for _, group := range groups {
		pages = append(pages, page{group.page, group.write})
	}
	for _, p := range pages {
		text, err := p.write()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, p.name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
