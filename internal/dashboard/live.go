package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// gathered is how long changes are gathered until they are sent.
	gathered = 250 * time.Millisecond
	// pinged is how often a stream looks again although nothing changed: for rights that have ended, and browsers that have gone.
	pinged = 15 * time.Second
	// sentWithin is how long a browser may take to take what it is sent.
	sentWithin = 10 * time.Second
	// mostStreams is how many browsers can be sent changes at once.
	mostStreams = 1000
	// mostTiles is how many tiles are sent one by one; of more changes the page is loaded again.
	mostTiles = 300
)

// liveOf is where the changes of a page are sent that shows what has a digest.
func liveOf(r *http.Request, digest string) string {
	return "/live?" + url.Values{"page": {r.URL.RequestURI()}, "have": {digest}}.Encode()
}

// digestOf is another one if anything else is shown of some entries, or of why they may not be what is so now.
func digestOf(entries []*entry, stale []string) string {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%q\n", stale)
	for _, e := range entries {
		fmt.Fprintf(sum, "%s\n%s\n%s\n%v\n", e.name, e.state, e.why, e.labels)
	}
	return strconv.FormatUint(sum.Sum64(), 16)
}

// change is what a browser is sent.
type change struct {
	event string
	data  any
}

// reload has a browser load what it shows again.
var reload = &change{event: "reload", data: ""}

// looker says what has changed since it was asked before; nil if nothing has.
type looker func(ctx context.Context) (*change, error)

// lookerOf is that of a page.
func (s *Server) lookerOf(to *url.URL, have string, v *visitor) (looker, error) {
	words := strings.Split(strings.Trim(to.Path, "/"), "/")
	switch words[0] {
	case "":
		q, err := queryOf(to.Query())
		return s.lookAtTiles(q, have, v), err
	case "members":
		return s.lookAt(have, v, strings.Join(words[1:], "/"), clusters, memberClusters), nil
	case "tokens":
		return s.lookAt(have, v, strings.Join(words[1:], "/"), tokens), nil
	case "deliveries":
		if len(words) > 2 {
			if _, known := kinds[words[1]]; !known {
				break
			}
			return s.lookAt(have, v, strings.Join(words[2:], "/"), words[1]), nil
		}
		return s.lookAt(have, v, "", bundles, clusterPlacements, placements), nil
	case "registration":
		return s.lookAt(have, v, "", tokens, requests), nil
	}
	return nil, &inputError{fmt.Errorf("the page %s has no changes", to.Path)}
}

// lookAt looks at what of some resources a visitor sees, or at the one object of a name.
func (s *Server) lookAt(have string, v *visitor, name string, resources ...string) looker {
	return func(ctx context.Context) (*change, error) {
		read := s.roll.of
		if name != "" {
			read = func(resource string) ([]*entry, error) { return s.roll.named(resource, name) }
		}
		all, stale, err := seenBy(ctx, v, read, resources)
		if err != nil {
			return nil, err
		}
		now := digestOf(all, stale)
		if now == have {
			return nil, nil
		}
		have = now
		return reload, nil
	}
}

// tileChanges are sent for changes of tiles.
type tileChanges struct {
	Put     []tileChange `json:"put"`
	Gone    []string     `json:"gone"`
	Summary string       `json:"summary"`
}

type tileChange struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	HTML  string `json:"html"`
}

// lookAtTiles looks at the members that match a query.
func (s *Server) lookAtTiles(q query, have string, v *visitor) looker {
	var before []*entry
	var said []string
	first := true
	return func(ctx context.Context) (*change, error) {
		all, stale, err := s.entries(ctx, v, clusters, memberClusters)
		if err != nil {
			return nil, err
		}
		now, was, looked := q.pick(all), before, !first
		changed := looked && !slices.Equal(stale, said) || !looked && digestOf(now, stale) != have
		before, said, first = now, stale, false
		switch {
		case changed:
			return reload, nil
		case !looked:
			return nil, nil
		}
		return q.changes(was, now, all)
	}
}

// changes are those of the tiles of what was shown before; nil if there are none.
func (q *query) changes(was, now, all []*entry) (*change, error) {
	changes := tileChanges{Put: []tileChange{}, Gone: []string{}}
	put := func(e *entry) error {
		html, err := part("fleet", "tile", q.tile(e, len(now)))
		changes.Put = append(changes.Put, tileChange{e.name, q.group(e), html})
		return err
	}
	var err error
	for i, k := 0, 0; (i < len(was) || k < len(now)) && len(changes.Put)+len(changes.Gone) <= mostTiles; { // both are in the order of names
		switch {
		case k == len(now) || i < len(was) && was[i].name < now[k].name:
			changes.Gone = append(changes.Gone, was[i].name)
			i++
		case i == len(was) || now[k].name < was[i].name:
			err = errors.Join(err, put(now[k]))
			k++
		default:
			if is, old := now[k], was[i]; is != old && (is.state != old.state || is.why != old.why || q.group(is) != q.group(old)) {
				err = errors.Join(err, put(is))
			}
			i++
			k++
		}
	}
	switch count := len(changes.Put) + len(changes.Gone); {
	case err != nil || count == 0:
		return nil, err
	case count > mostTiles || (len(now) <= namedUpTo) != (len(was) <= namedUpTo):
		return reload, nil
	}
	changes.Summary, err = part("fleet", "summary", q.summarize(all, time.Now()))
	return &change{"tiles", changes}, err
}

// live sends a browser what changes of a page (server-sent events; HTML Living Standard, 9.2).
func (s *Server) live(w http.ResponseWriter, r *http.Request, v *visitor) error {
	to, err := url.Parse(r.FormValue("page"))
	if err != nil {
		return &inputError{err}
	}
	look, err := s.lookerOf(to, r.FormValue("have"), v)
	if err != nil {
		return err
	}
	if s.streams.Add(1) > mostStreams {
		s.streams.Add(-1)
		return errors.New("too many browsers watch: this one is not sent what changes")
	}
	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx holds changes back
	stream := http.NewResponseController(w)
	ping := time.NewTicker(pinged)
	defer ping.Stop()
	failed := false
	for {
		next := s.roll.next()
		text := ": nothing\n\n"
		c, err := look(r.Context())
		if failed && err == nil {
			c = reload // which takes the problem off the page
		}
		if failed = err != nil; failed {
			text = event("problem", err.Error())
		} else if c != nil {
			text = event(c.event, c.data)
		}
		if err := errors.Join(stream.SetWriteDeadline(time.Now().Add(sentWithin)), write(w, text), stream.Flush()); err != nil {
			return nil // the browser has gone, and comes again if it wants to
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		case <-next:
			if retry.Wait(r.Context(), clock.RealClock{}, gathered) != nil {
				return nil
			}
		case <-ping.C:
			if _, err := s.door.visitor(r); err != nil {
				return nil // who comes again is sent to the door
			}
		}
	}
}

// event is an event of a stream.
func event(name string, data any) string {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings and structs of them
	}
	return "event: " + name + "\ndata: " + string(text) + "\n\n"
}

func write(w http.ResponseWriter, text string) error {
	_, err := w.Write([]byte(text))
	return err
}
