package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

const (
	// redrawn is the interval of drawing. Ages grow, so the table changes without events.
	redrawn = time.Second
	// problemLasts exceeds client-go's retry delay. Without another error in this time, a problem is
	// over.
	problemLasts = time.Minute
)

// change is an event of an object, or an error of the watch.
type change struct {
	object client.Object
	gone   bool
	err    error
}

// watch shows the table and its changes until the context ends: redrawn on a terminal, else
// with a line for each change.
func (g *get) watch(ctx context.Context, k kind, names []string) error {
	changes, err := g.changes(ctx, k, names)
	if err != nil {
		return err
	}
	if out, ok := g.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		restore, can := drawsOn(out)
		defer restore()
		if can {
			return g.redraw(ctx, k, names, changes, out)
		}
	}
	return g.append(ctx, k, names, changes)
}

// changes returns the objects of a kind and their changes until the context ends. Without the right
// to list them, it returns the error.
func (g *get) changes(ctx context.Context, k kind, names []string) (<-chan change, error) {
	now, err := g.find(ctx, k, names) // a watch would retry forever
	if err != nil {
		return nil, err
	}
	hub, _, err := g.client()
	if err != nil {
		return nil, err
	}
	options, err := g.options()
	if err != nil {
		return nil, err
	}
	changes := make(chan change)
	for _, list := range now.lists {
		if err := g.followAll(ctx, hub, list, options, changes); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// followAll sends each object of a kind and each change until the context ends.
func (h *access) followAll(ctx context.Context, hub client.WithWatch, list client.ObjectList, options []client.ListOption,
	changes chan<- change) error {
	with := func(raw metav1.ListOptions) []client.ListOption {
		return append(slices.Clone(options), &client.ListOptions{Raw: &raw})
	}
	empty, err := h.emptyOf(list)
	if err != nil {
		return err
	}
	informer := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			page := list.DeepCopyObject().(client.ObjectList)
			return page, hub.List(ctx, page, with(raw)...)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return hub.Watch(ctx, list.DeepCopyObject().(client.ObjectList), with(raw)...)
		},
	}, empty, 0)
	send := func(c change) {
		select {
		case changes <- c:
		case <-ctx.Done():
		}
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if !errors.Is(err, io.EOF) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // the normal ends of a watch
			send(change{err: err})
		}
	}); err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { send(change{object: o.(client.Object)}) },
		UpdateFunc: func(_, o any) { send(change{object: o.(client.Object)}) },
		DeleteFunc: func(o any) {
			if unseen, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unseen.Obj
			}
			send(change{object: o.(client.Object), gone: true})
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	return nil
}

// append prints a line for each object and each change.
func (g *get) append(ctx context.Context, k kind, names []string, changes <-chan change) error {
	t := newTable(g.Out, k, g.wide(), g.styleOf(g.Out))
	t.printHeader()
	if err := t.flush(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-changes:
			if c.err != nil {
				fmt.Fprintf(g.ErrOut, "Not live: %s\n", c.err)
				continue
			}
			if len(names) > 0 && calledBy(c.object, names) == "" {
				continue
			}
			row := view.Row(c.object, time.Now())
			if c.gone {
				row[slices.Index(k.columns, "STATE")] = "Gone"
			}
			t.print(row)
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
}

// screen is the content of a terminal.
type screen struct {
	kind
	style
	wide    bool
	names   []string
	objects map[string]client.Object
	// problem is the error of the watch, and its time.
	problem error
	since   time.Time
}

// redraw draws the table at each change and interval.
func (g *get) redraw(ctx context.Context, k kind, names []string, changes <-chan change, terminal *os.File) error {
	v := &screen{kind: k, style: g.styleOf(terminal), wide: g.wide(), names: names, objects: map[string]client.Object{}}
	pace := time.NewTicker(redrawn)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-changes:
			v.take(c, time.Now())
		case now := <-pace.C:
			width, height, err := term.GetSize(int(terminal.Fd()))
			if err != nil {
				width, height = 80, 24
			}
			if _, err := terminal.WriteString(v.draw(width, height, now)); err != nil {
				return err
			}
		}
	}
}

// keyOf identifies an object of any kind.
func keyOf(o client.Object) string { return fmt.Sprintf("%s %T", view.NameOf(o), o) }

// take applies a change. A change also proves that the watch works.
func (v *screen) take(c change, now time.Time) {
	v.problem, v.since = c.err, now
	if c.err != nil || len(v.names) > 0 && calledBy(c.object, v.names) == "" {
		return
	}
	key := keyOf(c.object)
	if delete(v.objects, key); !c.gone {
		v.objects[key] = c.object
	}
}

// draw returns the output to replace the last table on a terminal of the given size.
func (v *screen) draw(width, height int, now time.Time) string {
	var text bytes.Buffer
	look := v.style
	look.width = width
	t := newTable(&text, v.kind, v.wide, look)
	t.printHeader()
	for _, key := range slices.Sorted(maps.Keys(v.objects)) {
		t.print(view.Row(v.objects[key], now))
	}
	_ = t.flush() // a buffer does not fail
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if v.problem != nil && now.Sub(v.since) < problemLasts {
		problem := fmt.Sprintf("Not live for %s: ", view.Since(v.since, now)) + v.problem.Error()
		lines = append([]string{look.cut(problem)}, lines...)
	}
	if hidden := len(lines) - (height - 2); hidden > 0 && height > 4 {
		lines = append(lines[:len(lines)-hidden], fmt.Sprintf("and %d more", hidden))
	}
	const home, clearLine, clearBelow = "\033[H", "\033[K", "\033[J"
	return home + strings.Join(lines, clearLine+"\n") + clearLine + "\n" + clearBelow
}
