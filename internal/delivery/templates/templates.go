// Package templates fills the templates in the Helm values of Bundles. Any tenant may be the
// author. Filling a template costs a bounded amount of memory and time, and has no side effect.
//
// Its invariant: the same text and data give the same result, and reveal nothing of the hub.
package templates

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"

	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxText limits the length of a template. maxResult limits the result of a template, and of
	// each function inside.
	maxText, maxResult = 64 << 10, 1 << 20
	left, right        = "${", "}"
	// nameOfAll is the name of every template; errors name it.
	nameOfAll = "value"
	stepName  = "countStep"
)

// functions holds the safe sprig functions: they are deterministic, reveal nothing of the hub, and
// return at once. A result with random parts would cause a new deployment at every reconcile. The
// functions of Go's templates are included to bound them.
var functions = func() template.FuncMap {
	permitted := sprig.HermeticTxtFuncMap()
	maps.DeleteFunc(permitted, func(name string, _ any) bool {
		for _, prefix := range []string{
			"rand", "gen", "bcrypt", "htpasswd", "encryptAES", "uuid", "now", "ago", "env", "expandenv", "getHostByName", "shuffle",
			"derivePassword",
			"buildCustomCert",
		} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	})
	maps.Copy(permitted, template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	return permitted
}()

// comparison matches the comparison functions of Go's templates; functions lacks them.
var comparison = regexp.MustCompile(`\b(eq|ne|lt|le|gt|ge)\b`)

// Filler fills templates within one common allowance.
type Filler struct {
	allowance
	functions template.FuncMap
	// step has only the step counter.
	step template.FuncMap
}

// fillers is a pool, because creating a Filler's functions takes as long as filling a template.
var fillers = sync.Pool{New: func() any { return newFiller() }}

// With calls a function with a Filler and the whole allowance of one Cluster.
func With(use func(*Filler) error) error {
	f := fillers.Get().(*Filler)
	defer fillers.Put(f)
	f.left = maxWork
	return use(f)
}

func newFiller() *Filler {
	f := &Filler{allowance: allowance{left: maxWork}, functions: template.FuncMap{}}
	for name, function := range functions {
		f.functions[name] = f.bound(name, reflect.ValueOf(function))
	}
	f.step = template.FuncMap{stepName: func(work int) (string, error) { return "", f.spend(float64(work)) }}
	maps.Copy(f.functions, f.step)
	return f
}

// Fill returns a text with its templates filled. The delimiters are ${ and }. A key missing in
// the data is an error.
func (f *Filler) Fill(text string, data map[string]any) (string, error) {
	if !strings.Contains(text, left) {
		return text, nil
	}
	if len(text) > maxText {
		return "", fmt.Errorf("a template may be %d bytes long, and this one has %d: set helm.disablePreProcess if it is none",
			maxText, len(text))
	}
	parsed, err := template.New(nameOfAll).Delims(left, right).Option("missingkey=error").Funcs(f.functions).Parse(text)
	if err != nil {
		return "", fmt.Errorf("%w (set helm.disablePreProcess to leave ${ } alone)", plain(err))
	}
	for _, one := range parsed.Templates() {
		if err := f.count(one.Root); err != nil {
			return "", err
		}
	}
	var out limited
	if err := parsed.Execute(&out, data); err != nil {
		return "", plain(err)
	}
	return out.String(), nil
}

// count inserts a step before a list of nodes, and before the body of every range in the list.
// Each step counts the work of one pass.
func (f *Filler) count(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	text := list.String()
	work := len(text) + perComparison*len(comparison.FindAllString(text, -1))
	for _, node := range list.Nodes {
		var err error
		switch node := node.(type) {
		case *parse.RangeNode:
			err = errors.Join(f.count(node.List), f.count(node.ElseList))
		case *parse.IfNode:
			err = errors.Join(f.count(node.List), f.count(node.ElseList))
		case *parse.WithNode:
			err = errors.Join(f.count(node.List), f.count(node.ElseList))
		}
		if err != nil {
			return err
		}
	}
	step, err := template.New(nameOfAll).Funcs(f.step).Parse(fmt.Sprintf("{{%s %d}}", stepName, work+perStep))
	if err != nil {
		return fmt.Errorf("counting steps: %w", err)
	}
	list.Nodes = append([]parse.Node{step.Root.Nodes[0]}, list.Nodes...)
	return nil
}

// Error is the error of a template that cannot be filled. It may quote the data.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// maxError limits the length of an Error.
const maxError = 400

// plain removes the position in the template from an error, because it is useless for a value of
// one line.
func plain(err error) error {
	if errors.Is(err, errAllowance) {
		return errAllowance
	}
	text := strings.TrimPrefix(err.Error(), "template: ")
	if _, after, ok := strings.Cut(text, ": executing \""+nameOfAll+"\" at "); ok {
		text = after
	}
	return Error(kube.Clip(text, maxError))
}

// limited is a buffer with a size limit.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxResult {
		return 0, errResult
	}
	return l.Buffer.Write(p)
}
