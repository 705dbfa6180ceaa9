package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// Audit is a mark in the audit log of a control plane.
type Audit struct {
	path string
	from int64
}

// MarkAudit marks the end of the audit log of a control plane in a directory.
func MarkAudit(dir string) (Audit, error) {
	path := filepath.Join(dir, "audit.log")
	info, err := os.Stat(path)
	if err != nil {
		return Audit{}, err
	}
	return Audit{path: path, from: info.Size()}, nil
}

// Since returns the growth of the log since another mark.
func (a Audit) Since(other Audit) int64 { return a.from - other.from }

// event is a line of the log.
type event struct {
	Verb  string `json:"verb"`
	Stage string `json:"stage"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// Writes counts the successful and failed writes since the mark by kind, without Leases and
// reviews.
func (a Audit) Writes() (map[string]int, error) {
	aside := []string{"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
	return a.count(func(e event) bool {
		return slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && !slices.Contains(aside, e.ObjectRef.Resource)
	})
}

// Of counts all requests of a user since the mark by kind, without watches and Leases.
func (a Audit) Of(user string) (map[string]int, error) {
	return a.count(func(e event) bool {
		return e.User.Username == user && e.Verb != "watch" && e.ObjectRef.Resource != "leases"
	})
}

func (a Audit) count(counts func(event) bool) (map[string]int, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(a.from, 0); err != nil {
		return nil, err
	}
	kinds, lines := map[string]int{}, bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return kinds, nil // the end
		}
		var e event
		if json.Unmarshal(bytes.TrimSpace(line), &e) == nil && e.Stage == "ResponseComplete" && counts(e) {
			kinds[e.Verb+" "+e.ObjectRef.Resource+" "+e.ObjectRef.Subresource]++
		}
	}
}
