// Package testbrowser opens pages in a headless Chromium. An error in the browser's console fails
// the test.
package testbrowser

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/muster-fleet/muster/internal/testkube"
)

// step limits the time of one step.
const step = 30 * time.Second

// starts limits the attempts to start the browser. Chromium sometimes ends at its start on a busy
// machine, before it has seen any page.
const starts = 3

// Browser is one window.
type Browser struct {
	testing.TB
	// Context is the context for chromedp.
	Context context.Context
	// MayFail permits answers of the server with an error status.
	MayFail bool
}

// Program returns the path of the browser on this machine; empty if there is none.
func Program() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// New opens a browser with further flags, and skips the test if there is none on this machine.
func New(t testing.TB, flags ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	program := Program()
	if program == "" {
		t.Skip("there is no Chromium on this machine: install the package chromium to have the pages looked at in a browser")
	}
	b := &Browser{TB: t}
	for attempt := 1; ; attempt++ {
		err := b.start(program, flags)
		if err == nil {
			return b
		}
		if attempt == starts {
			t.Fatal(err)
		}
		t.Logf("the browser did not start, and is started again: %v", err)
	}
}

// start starts the browser, and fails the test on errors in its console.
func (b *Browser) start(program string, flags []chromedp.ExecAllocatorOption) error {
	ctx, end := chromedp.NewExecAllocator(b.TB.Context(), slices.Concat(chromedp.DefaultExecAllocatorOptions[:],
		[]chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1280, 900)}, flags)...)
	b.Cleanup(end)
	b.Context, end = chromedp.NewContext(ctx)
	b.Cleanup(end)
	var mu sync.Mutex
	var messages []string
	err := chromedp.Listen(b.Context, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			messages = append(messages, fmt.Sprintf("%+v", *event.ExceptionDetails))
		case *log.EventEntryAdded:
			if event.Entry.Level == log.EntryLevelError && (!b.MayFail || event.Entry.Source != log.EntrySourceNetwork) {
				messages = append(messages, event.Entry.Text+" "+event.Entry.URL)
			}
		}
	})
	if err != nil {
		return err
	}
	b.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(messages) > 0 {
			b.Errorf("the browser says:\n%s", strings.Join(messages, "\n"))
		}
	})
	return nil
}

// Do runs steps.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, end := context.WithTimeout(b.Context, step)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		text, _ := chromedp.Run(b.Context, chromedp.Evaluate[string]("document.body.innerText")) // as far as there is one
		b.Fatalf("%v; the page is:\n%s", err, text)
	}
}

// JS returns the value of an expression in the page.
func (b *Browser) JS(expression string) string {
	b.Helper()
	value, err := b.eval(expression)
	if err != nil {
		b.Fatal(err)
	}
	return value
}

func (b *Browser) eval(expression string) (string, error) {
	ctx, end := context.WithTimeout(b.Context, step)
	defer end()
	return chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
}

// Becomes waits for a value of an expression.
func (b *Browser) Becomes(what, expression, want string) {
	b.Helper()
	testkube.Eventually(b.TB, what, func() error {
		got, err := b.eval(expression) // which throws while another page is being loaded
		if err == nil && got != want {
			err = fmt.Errorf("%s is %q, not %q", expression, got, want)
		}
		return err
	})
}
