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
	// gathered is the delay for collecting changes before they are sent.
	gathered = 250 * time.Millisecond
	// pinged is the interval of a stream's checks without changes: rights may have ended, and
	// browsers may have gone.
	pinged = 15 * time.Second
	// sentWithin limits the time of a browser for receiving data.
	sentWithin = 10 * time.Second
	// mostStreams limits the pages with live changes, mostStreamsEach the pages of one visitor.
	mostStreams     = 1000
	mostStreamsEach = 100
	// outdated is the time after which a page reloads if it shows unwatched objects.
	outdated = time.Minute
	// mostTiles limits the tiles sent one by one; after more changes the page reloads.
	mostTiles = 300
)

// liveOf returns the address for changes of a page with a digest.
func liveOf(r *http.Request, digest string) string {
	return "/live?" + url.Values{"page": {r.URL.RequestURI()}, "have": {digest}}.Encode()
}

// follow returns the address for changes of an object's page, and the reasons why the page may be
// out of date. A page calls it before it reads the object: no change is then lost between the two.
func (s *Server) follow(r *http.Request, v *visitor, resources ...string) (live string, stale []string, err error) {
	name := strings.TrimPrefix(r.PathValue("namespace")+"/"+r.PathValue("name"), "/")
	all, stale, err := s.entriesNamed(r.Context(), v, name, resources...)
	return liveOf(r, digestOfAll(all, slices.Concat(stale, s.drains.mark(name)))), stale, err
}

// digestOf changes when a table row of an entry changes, or a reason why the entries may be out
// of date.
func digestOf(entries []*entry, stale []string) string {
	return digest(entries, stale, func(e *entry) any { return e.shown })
}

// digestOfAll changes when any data of an entry changes.
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

// change is an event for a browser.
type change struct {
	event string
	data  any
}

// reload makes a browser reload its page.
var reload = &change{event: "reload", data: ""}

// looker checks the data of a page.
type looker struct {
	// resources are the resources on the page, limited to the visitor's rights and search, or to
	// one object if there is a name.
	resources []string
	name      string
	// look returns the change since its last call; nil without one.
	look func(ctx context.Context) (*change, error)
}

// lookerOf returns the looker of a page.
func (s *Server) lookerOf(to *url.URL, have string, v *visitor) (*looker, error) {
	words := strings.Split(strings.Trim(to.Path, "/"), "/")
	switch words[0] {
	case "":
		q, err := queryOf(fleetPath, to.Query())
		if q.View == asWall {
			return s.lookAtTiles(q, have, v), err
		}
		return s.lookAtTable(q, have, v), err
	case "members":
		return s.lookAt(have, v, strings.Join(words[1:], "/"), clusters, memberClusters), nil
	case "tokens":
		if len(words) < 3 {
			break
		}
		return &looker{[]string{tokens, requests}, "", reloading(have, func(ctx context.Context) (string, error) {
			digest, _, _, err := s.lookAtToken(ctx, v, words[1], words[2])
			return digest, err
		})}, nil
	case "requests":
		return s.lookAt(have, v, strings.Join(words[1:], "/"), requests), nil
	case "deliveries":
		if len(words) > 2 {
			if _, known := kinds[words[1]]; !known {
				break
			}
			return s.lookAt(have, v, strings.Join(words[2:], "/"), words[1]), nil
		}
		q, err := queryOf(deliveriesPath, to.Query())
		return s.lookAtLines(q, have, v, deliveredResources...), err
	case "registration":
		q, err := queryOf(registrationPath, to.Query())
		return s.lookAtLines(q, have, v, tokens, requests), err
	}
	return nil, &inputError{fmt.Errorf("the page %s has no live updates", to.Path)}
}

// lookAt checks the one object with a name.
func (s *Server) lookAt(have string, v *visitor, name string, resources ...string) *looker {
	return &looker{resources, name, reloading(have, func(ctx context.Context) (string, error) {
		all, stale, err := s.entriesNamed(ctx, v, name, resources...)
		return digestOfAll(all, slices.Concat(stale, s.drains.mark(name))), err
	})}
}

// lookAtLines checks the entries of some resources for a visitor's search.
func (s *Server) lookAtLines(q query, have string, v *visitor, resources ...string) *looker {
	return &looker{resources, "", reloading(have, func(ctx context.Context) (string, error) {
		all, stale, err := s.entries(ctx, v, resources...)
		return digestOf(q.matching(all), stale), err
	})}
}

// reloading reloads a page when its digest changes. After a while it also reloads the page without
// a change, because ages grow, and the page may show unwatched objects.
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

// lookAtTable checks the members of a query, and the other problems in the fleet.
func (s *Server) lookAtTable(q query, have string, v *visitor) *looker {
	return &looker{fleetResources, "", reloading(have, func(ctx context.Context) (string, error) {
		f, err := s.look(ctx, v, q)
		if err != nil {
			return "", err
		}
		return f.digest(), nil
	})}
}

// tileChanges is the event data for changes of tiles.
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

// lookAtTiles checks the members of a query, and the other problems in the fleet.
func (s *Server) lookAtTiles(q query, have string, v *visitor) *looker {
	var before *shown
	return &looker{resources: fleetResources, look: func(ctx context.Context) (*change, error) {
		f, err := s.look(ctx, v, q)
		if err != nil {
			return nil, err
		}
		was := before
		before = f
		sum, err := s.summaryOf(ctx, v, f, time.Now())
		if err != nil {
			return nil, err
		}
		f.summary, err = part("fleet", "summary", sum)
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

// changes returns the changes of the tiles, and of the data beside them, since an earlier view;
// nil without any.
func (f *shown) changes(before *shown) (*change, error) {
	changes, was, now := tileChanges{Put: []tileChange{}, Gone: []string{}}, before.tiles, f.tiles
	put := func(e *entry) error {
		html, err := part("fleet", "tile", tile{e})
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
	if count > mostTiles {
		return reload, nil
	}
	if count == 0 && f.summary == before.summary {
		return nil, nil
	}
	changes.Summary = f.summary
	return &change{"tiles", changes}, nil
}

// live sends a browser the changes of a page (server-sent events; HTML Living Standard, 9.2).
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
	if all, own := s.streams.Add(1), v.streams.Add(1); all > mostStreams || own > mostStreamsEach {
		return errTooMany
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx holds changes back
	stream := http.NewResponseController(w)
	send := func(text string) error {
		return errors.Join(stream.SetWriteDeadline(time.Now().Add(sentWithin)), write(w, text), stream.Flush())
	}
	reader, end := s.cache.read(page.name, page.resources...)
	defer end()
	ping := time.NewTicker(pinged)
	defer ping.Stop()
	text, failed := nothing, false
	for {
		c, err := page.look(r.Context())
		if failed && err == nil {
			c = reload // the reload removes the problem from the page
		}
		if failed = err != nil; failed {
			text = event("problem", err.Error())
		} else if c != nil {
			text = event(c.event, c.data)
		}
		if text != "" && send(text) != nil {
			return nil // the browser has gone, and may reconnect
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
			if _, err := s.authenticator.visitor(r); err != nil {
				return nil // a reconnect is refused
			}
			text = nothing // detects a closed browser
		}
	}
}

// nothing is a comment of a stream.
const nothing = ": nothing\n\n"

// event returns the text of an event in a stream.
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
