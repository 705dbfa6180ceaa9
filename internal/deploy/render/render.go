// Package render loads and renders the charts of Bundles in processes of their own. An endless or
// huge template ends only such a process.
//
// Its invariant: the process gets its input over its standard input, and has neither credentials
// nor a connection. Its parent answers the look-ups of templates, with the rights of the Bundle.
package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	helm "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/muster-fleet/muster/internal/delivery/chart"
	"github.com/muster-fleet/muster/internal/process"
)

const (
	// mebibyte is the unit of the limits.
	mebibyte = 1 << 20
	// maxOutput bounds the answer of a process. A larger release would not fit into the history by
	// far.
	maxOutput = 16 * mebibyte
	// LeastMemory is the memory need of a process: Go maps its heap in units of 64 MiB, and uses some
	// more.
	LeastMemory = 128 * mebibyte
	// pair is the least memory for two processes at a time.
	pair = 384 * mebibyte
	// stub is the function of the templates of the loaded chart for their rendered text.
	stub = "musterRendered"
)

type (
	// Input is the input of a chart.
	Input = chart.Input
	// Templates is the input of the templates.
	Templates = chart.Templates
	// Lookup is the function lookup of templates.
	Lookup = chart.Lookup
)

// Loaded is a chart without its sources: its templates call the stub.
type Loaded struct {
	Chart  *helm.Chart
	Values map[string]any
	// Hooks is the maximum number of hooks of the chart.
	Hooks int
}

// Ended is the error of a process ended by a limit.
type Ended struct{ cause string }

// Error describes the limit and the remedy.
func (e *Ended) Error() string {
	return fmt.Sprintf("the process of muster-deployer that renders this Bundle was ended: %s: look for a template with a huge or endless "+
		"result, or give the agent more memory", e.cause)
}

// Renderer starts processes, a few at a time.
type Renderer struct {
	// Memory is the maximum memory of each process in bytes, Timeout its maximum time.
	Memory  uint64
	Timeout time.Duration
	slots   chan struct{}
}

// New returns a Renderer with that much memory for all processes together.
func New(memory uint64, timeout time.Duration) *Renderer {
	slots := 1
	if memory >= pair {
		slots = 2
	}
	return &Renderer{Memory: max(LeastMemory, memory/uint64(slots)), Timeout: timeout, slots: make(chan struct{}, slots)}
}

// request is the first line to a process.
type request struct {
	Input Input
	// Templates is nil if the chart is only loaded.
	Templates *Templates
}

// message is a line of the process.
type message struct {
	Lookup *lookup           `json:",omitempty"`
	Loaded *Loaded           `json:",omitempty"`
	Files  map[string]string `json:",omitempty"`
	Failed *failure          `json:",omitempty"`
}

type lookup struct{ APIVersion, Kind, Namespace, Name string }

// answer is the answer to a lookup.
type answer struct {
	Object json.RawMessage
	Failed string
}

// failure is an error of the chart.
type failure struct {
	Text string
	// Unsupported is set for an error of that kind.
	Unsupported *chart.Unsupported
	// Archive is set if the archive could not be loaded.
	Archive bool
}

func (f *failure) err() error {
	switch {
	case f.Unsupported != nil:
		return f.Unsupported
	case f.Archive:
		return &chart.ArchiveError{Text: f.Text}
	}
	return errors.New(f.Text)
}

// Load loads a chart.
func (r *Renderer) Load(ctx context.Context, input Input) (*Loaded, error) {
	last, err := r.run(ctx, request{Input: input}, nil)
	if err != nil {
		return nil, err
	}
	return last.Loaded, nil
}

// Render renders the templates of a chart, by their full names.
func (r *Renderer) Render(ctx context.Context, input Input, templates Templates, lookUp Lookup) (map[string]string, error) {
	last, err := r.run(ctx, request{Input: input, Templates: &templates}, lookUp)
	if err != nil {
		return nil, err
	}
	return last.Files, nil
}

// run runs one process, and returns its last message.
func (r *Renderer) run(ctx context.Context, order request, lookUp Lookup) (*message, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program that renders charts: %w", err)
	}
	command := exec.Command(path, Command, strconv.FormatUint(r.Memory, 10))
	command.Env = []string{} // no access to a cluster
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a process that renders: %w", err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a process that renders: %w", err)
	}
	defer func() { _ = out.Close() }() // it was read
	stderr := &tail{}
	command.Stdout, command.Stderr = answers, stderr
	exited := process.Start(command, func() {})
	_ = answers.Close() // the process has its own
	if command.Process == nil {
		return nil, fmt.Errorf("starting a process that renders: %w", <-exited)
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() }) // it may have ended by itself
	last, err := converse(order, stdin, out, lookUp)
	stop()
	_, _ = stdin.Close(), command.Process.Kill() // it has nothing more to send
	exit := <-exited
	switch {
	case err == nil && last.Failed != nil:
		return nil, last.Failed.err()
	case err == nil:
		return last, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &Ended{fmt.Sprintf("it did not finish within %s", r.Timeout)}
	case errors.Is(err, errTooMuch):
		return nil, &Ended{fmt.Sprintf("the chart makes more than %d MiB", maxOutput/mebibyte)}
	case outOfMemory(stderr.String()):
		return nil, &Ended{fmt.Sprintf("it ran out of memory, with a limit of %d MiB", r.Memory/mebibyte)}
	}
	return nil, &Ended{fmt.Sprintf("%v (%v): %.300s", exit, err, stderr)}
}

// outOfMemory reports whether the last output of a process means a lack of memory. Go's runtime
// does not always name the cause: a thread fails to start, or a part of the heap is missing.
func outOfMemory(said string) bool {
	for _, text := range []string{"out of memory", "cannot allocate memory", "newosproc", "segmentation violation"} {
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

var errTooMuch = errors.New("too much output")

// converse sends a request, answers lookups, and returns the last message.
func converse(order request, stdin io.Writer, out io.Reader, lookUp Lookup) (*message, error) {
	to, from := json.NewEncoder(stdin), json.NewDecoder(&limited{out, maxOutput})
	if err := to.Encode(order); err != nil {
		return nil, err
	}
	for {
		received := &message{}
		if err := from.Decode(received); err != nil {
			return nil, err
		}
		if received.Lookup == nil {
			return received, nil
		}
		query := received.Lookup
		object, err := lookUp(query.APIVersion, query.Kind, query.Namespace, query.Name)
		found := answer{}
		if err == nil {
			found.Object, err = json.Marshal(object)
		}
		if err != nil {
			found.Failed = err.Error()
		}
		if err := to.Encode(found); err != nil {
			return nil, err
		}
	}
}

// limited ends an output above the limit.
type limited struct {
	io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// tail keeps the beginning of the last output of a process.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	if left := 4096 - t.Len(); left > 0 {
		t.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}
