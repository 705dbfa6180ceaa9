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

// Event is a line of the log.
type Event struct {
	Verb       string `json:"verb"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	User       User   `json:"user"`
	// ImpersonatedUser is nil unless User acts as another user.
	ImpersonatedUser *User `json:"impersonatedUser"`
	ObjectRef        struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// User is a user of the API server.
type User struct {
	Username string `json:"username"`
}

// Actor returns the name of the user whose rights count.
func (e Event) Actor() string {
	if e.ImpersonatedUser != nil {
		return e.ImpersonatedUser.Username
	}
	return e.User.Username
}

// Writes counts the successful and failed writes since the mark by kind, without Leases and
// reviews.
func (a Audit) Writes() (map[string]int, error) {
	aside := []string{"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
	return a.count(func(e Event) bool {
		return slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && !slices.Contains(aside, e.ObjectRef.Resource)
	})
}

// Of counts all requests of a user since the mark by kind, without watches and Leases.
func (a Audit) Of(user string) (map[string]int, error) {
	return a.count(func(e Event) bool {
		return e.User.Username == user && e.Verb != "watch" && e.ObjectRef.Resource != "leases"
	})
}

func (a Audit) count(counts func(Event) bool) (map[string]int, error) {
	kinds := map[string]int{}
	return kinds, a.Each(func(e Event) {
		if e.Stage == "ResponseComplete" && counts(e) {
			kinds[e.Verb+" "+e.ObjectRef.Resource+" "+e.ObjectRef.Subresource]++
		}
	})
}

// Each calls visit for each event since the mark, at each of its stages.
func (a Audit) Each(visit func(Event)) error {
	file, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(a.from, 0); err != nil {
		return err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the end
		}
		var e Event
		if json.Unmarshal(bytes.TrimSpace(line), &e) == nil {
			visit(e)
		}
	}
}
