package main

import (
	"encoding/json"
	"strings"
)

// index returns a script with the data for the search. In a browser that opens files, no page can
// read another file, but its scripts run.
func (s *site) index() ([]byte, error) {
	type found struct {
		Page  string `json:"p"`
		Title string `json:"t"`
		Place string `json:"u"`
		Text  string `json:"x"`
	}
	var entries []found
	for _, source := range s.sources() {
		p := s.pages[source]
		for _, part := range p.sections {
			entries = append(entries, found{
				Page: p.title, Title: part.title, Place: place(source, true) + "#" + part.anchor, Text: strings.Join(strings.Fields(part.text), " "),
			})
		}
	}
	data, err := json.Marshal(entries)
	return append(append([]byte("window.searchIndex = "), data...), ";\n"...), err
}
