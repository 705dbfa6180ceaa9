package restore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// apiServer counts lists, and answers with a version.
type apiServer struct {
	version atomic.Pointer[string]
	lists   atomic.Int32
	refuses atomic.Bool
}

func (a *apiServer) at(version string) { a.version.Store(&version) }

// watches are of that many kinds together.
func (a *apiServer) watches(number int) []*toolscache.ListWatch {
	server, all := NewServer(), []*toolscache.ListWatch{}
	for range number {
		all = append(all, SurviveTogether(server, &toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				a.lists.Add(1)
				return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: *a.version.Load()}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				if a.refuses.Load() {
					return nil, errors.New("the connection is refused")
				}
				return watch.NewFake(), nil
			},
		}))
	}
	return all
}

func goOn(lw *toolscache.ListWatch, from string) (watch.Interface, error) {
	timeout := int64(300)
	return lw.WatchWithContext(context.Background(), metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: &timeout})
}

func TestOneWatchOfAConnectionAsksForAllAfterABreak(t *testing.T) {
	var api apiServer
	api.at("100")
	all := api.watches(5)
	var running [5]watch.Interface
	goOnTogether := func() {
		t.Helper()
		var going sync.WaitGroup
		for i, lw := range all {
			going.Go(func() {
				var err error
				if running[i], err = goOn(lw, "100"); err != nil {
					t.Error(err)
				}
			})
		}
		going.Wait()
	}
	for want := int32(1); want <= 3; want++ {
		if goOnTogether(); api.lists.Load() != want {
			t.Fatalf("after %d breaks the server was asked %d times", want, api.lists.Load())
		}
		for _, events := range running {
			events.Stop()
		}
	}
}

func TestAnAnswerCountsUntilAWatchBreaks(t *testing.T) {
	for name, row := range map[string]struct {
		// between the answer to the first watch and the second watch, the server is restored.
		between func(api *apiServer, first watch.Interface, other *toolscache.ListWatch)
	}{
		"the first watch ends": {func(_ *apiServer, first watch.Interface, _ *toolscache.ListWatch) { first.Stop() }},
		"a watch is refused": {func(api *apiServer, _ watch.Interface, other *toolscache.ListWatch) {
			api.refuses.Store(true)
			if _, err := goOn(other, "100"); err == nil {
				t.Error("a watch was begun")
			}
			api.refuses.Store(false)
		}},
	} {
		var api apiServer
		api.at("100")
		all := api.watches(3)
		first, err := goOn(all[0], "100")
		if err != nil {
			t.Fatal(err)
		}
		row.between(&api, first, all[2])
		api.at("80")
		if _, err := goOn(all[1], "100"); !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: a watch of the restored server: %v", name, err)
		}
	}
}

func TestAnAnswerThatIsBehindIsNotTakenForARestore(t *testing.T) {
	var api apiServer
	api.at("100")
	all := api.watches(2)
	if _, err := goOn(all[0], "90"); err != nil {
		t.Fatal(err)
	}
	api.at("130")
	if _, err := goOn(all[1], "120"); err != nil || api.lists.Load() != 2 {
		t.Errorf("a watch from a later version: %v, after %d lists", err, api.lists.Load())
	}
}

func TestAWatchThatWaitsForAnotherToAskEndsWithItsContext(t *testing.T) {
	server := NewServer()
	done, err := server.enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := server.enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	done()
	if _, err := server.enter(context.Background()); err != nil {
		t.Error(err)
	}
}
