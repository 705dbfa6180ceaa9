// Package templates fills the templates in the Helm values of Bundles, whose authors may
// be anybody: whatever a template says, filling it costs a bounded amount of memory and
// time, and has no effect.
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
	// maxText is how long a template may be, maxResult how long what it, or a function in it, yields.
	maxText, maxResult = 64 << 10, 1 << 20
	left, right        = "${", "}"
	// nameOfAll is the name of every template; errors name it.
	nameOfAll = "value"
	stepName  = "countStep"
)

// functions are those of sprig that give the same result each time, reveal nothing of the hub, and
// return at once: a result that changed by itself would be a new deployment at every reconcile. The
// functions of Go's templates are here, too, so that they are bounded.
var functions = func() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	maps.DeleteFunc(all, func(name string, _ any) bool {
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
	maps.Copy(all, template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	return all
}()

// comparison are the functions of Go's templates that read their arguments and are
// not among functions.
var comparison = regexp.MustCompile(`\b(eq|ne|lt|le|gt|ge)\b`)

// Filler fills templates that share one allowance.
type Filler struct {
	allowance
	functions template.FuncMap
	// step has only the function that counts steps.
	step template.FuncMap
}

// fillers are kept, because making the functions of one takes as long as filling a template.
var fillers = sync.Pool{New: func() any { return newFiller() }}

// With calls a function with a filler that has the whole allowance of one Cluster.
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

// Fill returns a text with its templates filled. The delimiters are ${ and }; a key that the
// data lacks is an error.
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

// count inserts a step before a list of nodes, and before the body of every range in the list,
// which counts the work of one pass.
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

// Error is what a template says that cannot be filled in. It may quote what is filled in.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// maxError is how long an Error may be.
const maxError = 400

// plain removes the position in the template from an error, which is of no use for a value of one
// line.
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

// limited is a buffer that refuses to grow without bounds.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxResult {
		return 0, errResult
	}
	return l.Buffer.Write(p)
}
