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
	// pinged is how often a stream looks again although nothing changed: for rights that have ended,
	// and browsers that have gone.
	pinged = 15 * time.Second
	// sentWithin is how long a browser may take to take what it is sent.
	sentWithin = 10 * time.Second
	// mostStreams is how many pages can be sent changes at once, mostStreamsEach those of one visitor.
	mostStreams     = 1000
	mostStreamsEach = 100
	// outdated is after how long a page is loaded again that shows more than is watched.
	outdated = time.Minute
	// mostTiles is how many tiles are sent one by one; of more changes the page is loaded again.
	mostTiles = 300
)

// liveOf is where the changes of a page are sent that shows what has a digest.
func liveOf(r *http.Request, digest string) string {
	return "/live?" + url.Values{"page": {r.URL.RequestURI()}, "have": {digest}}.Encode()
}

// follow is where the changes of the page of one object are sent, and why the page may not be what
// is so now. A page calls it before it reads the object, so that no change is between the two.
func (s *Server) follow(r *http.Request, v *visitor, resources ...string) (live string, stale []string, err error) {
	all, stale, err := s.entriesNamed(r.Context(), v, strings.TrimPrefix(r.PathValue("namespace")+"/"+r.PathValue("name"), "/"), resources...)
	return liveOf(r, digestOfAll(all, stale)), stale, err
}

// digestOf is another one if a line of a table would say something else of some entries, or of why
// they may not be what is so now.
func digestOf(entries []*entry, stale []string) string {
	return digest(entries, stale, func(e *entry) any { return e.shown })
}

// digestOfAll is another one if anything has changed of some entries.
func digestOfAll(entries []*entry, stale []string) string {
	return digest(entries, stale, func(e *entry) any { return e.resourceVersion })
}

func digest(entries []*entry, stale []string, of func(*entry) any) string {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%q\n", stale)
	for _, e := range entries {
		fmt.Fprintf(sum, "%s %s %v\n", e.resource, e.name, of(e))
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

// looker looks at what a page shows.
type looker struct {
	// resources, of which the page shows what the visitor sees and has searched for, or one object
	// if there is a name.
	resources []string
	name      string
	// look says what has changed since it was called before; nil if nothing has.
	look func(ctx context.Context) (*change, error)
}

// lookerOf is that of a page.
func (s *Server) lookerOf(to *url.URL, have string, v *visitor) (*looker, error) {
	words := strings.Split(strings.Trim(to.Path, "/"), "/")
	switch words[0] {
	case "":
		q, err := queryOf(fleetPath, to.Query())
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
		q, err := queryOf(deliveriesPath, to.Query())
		return s.lookAtLines(q, have, v, bundles, clusterPlacements, placements, clusterRuns, runs), err
	case "registration":
		q, err := queryOf(registrationPath, to.Query())
		return s.lookAtLines(q, have, v, tokens, requests), err
	}
	return nil, &inputError{fmt.Errorf("the page %s has no changes", to.Path)}
}

// lookAt looks at the one object of a name.
func (s *Server) lookAt(have string, v *visitor, name string, resources ...string) *looker {
	return &looker{resources, name, reloading(have, func(ctx context.Context) (string, error) {
		all, stale, err := s.entriesNamed(ctx, v, name, resources...)
		return digestOfAll(all, stale), err
	})}
}

// lookAtLines looks at what of some resources a visitor sees and has searched for.
func (s *Server) lookAtLines(q query, have string, v *visitor, resources ...string) *looker {
	return &looker{resources, "", reloading(have, func(ctx context.Context) (string, error) {
		all, stale, err := s.entries(ctx, v, resources...)
		return digestOf(q.matching(all), stale), err
	})}
}

// reloading has a page loaded again when its digest is another one. After a while it is
// although nothing has changed: it says how long ago things were, and shows objects that the
// roll does not have.
func reloading(have string, digest func(context.Context) (string, error)) func(context.Context) (*change, error) {
	began := time.Now()
	return func(ctx context.Context) (*change, error) {
		now, err := digest(ctx)
		if err != nil || now == have && time.Since(began) < outdated {
			return nil, err
		}
		have, began = now, time.Now()
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

// lookAtTiles looks at the members that match a query, and at what else is wrong in the fleet.
func (s *Server) lookAtTiles(q query, have string, v *visitor) *looker {
	var before *shown
	return &looker{resources: fleetResources, look: func(ctx context.Context) (*change, error) {
		f, err := s.look(ctx, v, q)
		if err != nil {
			return nil, err
		}
		was := before
		before = f
		f.summary, err = part("fleet", "summary", f.summarize(time.Now()))
		switch {
		case err != nil:
			return nil, err
		case was == nil && f.digest() != have, was != nil && !slices.Equal(f.stale, was.stale):
			return reload, nil
		case was == nil:
			return nil, nil
		}
		return f.changes(was)
	}}
}

// changes are those of the tiles, and of what is beside them, since the fleet was so;
// nil if there are none.
func (f *shown) changes(before *shown) (*change, error) {
	changes, was, now := tileChanges{Put: []tileChange{}, Gone: []string{}}, before.tiles, f.tiles
	put := func(e *entry) error {
		html, err := part("fleet", "tile", f.tile(e, len(now)))
		changes.Put = append(changes.Put, tileChange{tileID(e), f.group(e), html})
		return err
	}
	var err error
	for i, k := 0, 0; (i < len(was) || k < len(now)) && len(changes.Put)+len(changes.Gone) <= mostTiles; { // both are in the order of names
		switch {
		case k == len(now) || i < len(was) && was[i].name < now[k].name:
			changes.Gone = append(changes.Gone, tileID(was[i]))
			i++
		case i == len(was) || now[k].name < was[i].name:
			err = errors.Join(err, put(now[k]))
			k++
		default:
			if is, old := now[k], was[i]; is != old && (is.state != old.state || is.why != old.why || f.group(is) != f.group(old)) {
				err = errors.Join(err, put(is))
			}
			i++
			k++
		}
	}
	if err != nil {
		return nil, err
	}
	count := len(changes.Put) + len(changes.Gone)
	if count > mostTiles || (len(now) <= namedUpTo) != (len(was) <= namedUpTo) {
		return reload, nil
	}
	if count == 0 && f.summary == before.summary {
		return nil, nil
	}
	changes.Summary = f.summary
	return &change{"tiles", changes}, nil
}

// live sends a browser what changes of a page (server-sent events; HTML Living Standard, 9.2).
func (s *Server) live(w http.ResponseWriter, r *http.Request, v *visitor) error {
	to, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil {
		return &inputError{err}
	}
	page, err := s.lookerOf(to, r.URL.Query().Get("have"), v)
	if err != nil {
		return err
	}
	defer s.streams.Add(-1)
	defer v.streams.Add(-1)
	if all, his := s.streams.Add(1), v.streams.Add(1); all > mostStreams || his > mostStreamsEach {
		return errTooMany
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx holds changes back
	stream := http.NewResponseController(w)
	send := func(text string) error {
		return errors.Join(stream.SetWriteDeadline(time.Now().Add(sentWithin)), write(w, text), stream.Flush())
	}
	reader, end := s.roll.read(page.name, page.resources...)
	defer end()
	ping := time.NewTicker(pinged)
	defer ping.Stop()
	text, failed := nothing, false
	for {
		c, err := page.look(r.Context())
		if failed && err == nil {
			c = reload // which takes the problem off the page
		}
		if failed = err != nil; failed {
			text = event("problem", err.Error())
		} else if c != nil {
			text = event(c.event, c.data)
		}
		if text != "" && send(text) != nil {
			return nil // the browser has gone, and comes again if it wants to
		}
		text = ""
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		case <-reader.changed:
			if retry.Wait(r.Context(), clock.RealClock{}, gathered) != nil {
				return nil
			}
		case <-ping.C:
			if _, err := s.door.visitor(r); err != nil {
				return nil // who comes again is sent to the door
			}
			text = nothing // a browser that has gone is noticed
		}
	}
}

// nothing is a comment of a stream.
const nothing = ": nothing\n\n"

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
