// Package restore keeps watches correct after their API server was restored from an older snapshot.
//
// Its invariant: a watch continues only from a version reached by the server. The agent links this
// package, so it imports only client-go.
package restore

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// NewInformer returns an informer that lists again after its API server was restored from an older
// snapshot; see Survive.
func NewInformer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(Survive(lw), o, resync, indexers)
}

// InPages makes a reflector list the current objects page by page. By default the server streams
// them as one event for each object. For thousands of objects, pages save half of the client's
// processor time and a third of the server's. For a few objects they cost one more request.
func InPages(lw *toolscache.ListWatch) toolscache.ListerWatcher { return inPages{lw} }

type inPages struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported makes the reflector list by pages instead of by a watch.
func (inPages) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists from the newest version. A list "from any version" may go back in time, and
// has no pages.
func (p inPages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	return p.ListWatch.ListWithContext(ctx, options)
}

// Objects is a client of one kind of object; L is its list type.
type Objects[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// ListWatch lists and watches the objects selected by narrow.
func ListWatch[L runtime.Object](objects Objects[L], narrow func(*metav1.ListOptions)) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			return objects.Watch(ctx, options)
		},
	}
}

// Survive returns a ListerWatcher with watches that end after the API server was restored from an
// older snapshot. Such a server has lower resource versions than the observed ones. It accepts a
// watch from a version in its future, and then sends no event until it gets there.
//
// Before it continues an interrupted watch, the ListerWatcher therefore queries the server for its
// version, at the cost of a list of one object. A watch ended by its time limit needs no query,
// because every restore interrupts the watches.
func Survive(lw toolscache.ListerWatcher) *toolscache.ListWatch {
	return SurviveTogether(NewServer(), lw)
}

// SurviveTogether does the same for one of several watches of kinds in one etcd, such as all custom
// resources of an API server. One query serves all of them.
func SurviveTogether(server *Server, lw toolscache.ListerWatcher) *toolscache.ListWatch {
	return survive(server, lw, clock.RealClock{})
}

func survive(server *Server, lw toolscache.ListerWatcher, clk clock.PassiveClock) *toolscache.ListWatch {
	s := &survivor{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(lw), server: server, clock: clk}
	return &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

type survivor struct {
	toolscache.ListerWatcherWithContext
	server *Server
	clock  clock.PassiveClock

	mu sync.Mutex
	// running is the last watch; nil if there was none.
	running *ending
	// ends is the time limit of the last watch; zero if it, or an attempt since, failed.
	ends time.Time
	// listed is the version of the last list, until an attempt to watch from there.
	listed string
	// restored is set if the server is behind the observed versions: everything must be listed again
	// from the current state.
	restored bool
}

func (s *survivor) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if s.isRestored() {
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	list, err := s.ListWithContext(ctx, options)
	if err != nil {
		return list, err
	}
	version, err := versionOf(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.restored = version, false
	return list, err
}

func (s *survivor) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	if s.running != nil {
		s.running.ended()
	}
	s.mu.Unlock()
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		if s.isRestored() {
			options.ResourceVersion = ""
		}
		events, err := s.begin(ctx, options)
		if err == nil {
			s.mu.Lock()
			s.restored = false
			s.mu.Unlock()
		}
		return events, err
	}
	if s.isKnown(options.ResourceVersion) {
		return s.begin(ctx, options)
	}
	done, err := s.server.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done() // once the watch runs, it proves the continuity of the server
	if err := s.reached(ctx, options.ResourceVersion); err != nil {
		s.interrupted()
		s.server.broke()
		return nil, err
	}
	return s.begin(ctx, options)
}

// begin begins a watch, and notes its time limit.
func (s *survivor) begin(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	now := s.clock.Now()
	events, err := s.WatchWithContext(ctx, options)
	s.interrupted()
	if err != nil || isBroken(events) {
		s.server.broke()
		return events, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = s.server.until(events)
	if options.TimeoutSeconds == nil {
		return s.running, nil
	}
	s.ends = now.Add(time.Duration(*options.TimeoutSeconds) * time.Second)
	return s.running, nil
}

func (s *survivor) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.ends = "", time.Time{}
}

// isKnown reports whether the server is known to have reached a version, without a query.
func (s *survivor) isKnown(observed string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return observed == "" || observed == "0" || observed == s.listed || !s.ends.IsZero() && !s.clock.Now().Before(s.ends)
}

// reached returns an error if the server is behind a version.
func (s *survivor) reached(ctx context.Context, observed string) error {
	if s.server.hasReached(observed) {
		return nil
	}
	one, err := s.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	now, err := versionOf(one)
	if err != nil {
		return err
	}
	s.server.answered(now)
	if order, err := resourceversion.CompareResourceVersion(now, observed); err != nil || order >= 0 {
		return nil //nolint:nilerr // versions that cannot be compared prove nothing
	}
	s.mu.Lock()
	s.restored = true
	s.mu.Unlock()
	return apierrors.NewResourceExpired(fmt.Sprintf("the API server was restored from an older snapshot: it is at resource version %s, after "+
		"%s was seen", now, observed))
}

func (s *survivor) isRestored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restored
}

func versionOf(list runtime.Object) (string, error) {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return "", fmt.Errorf("reading the version of a list: %w", err)
	}
	return accessor.GetResourceVersion(), nil
}
