package kubeclient

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func TestServerThatWasAwayIsListedAnewInsteadOfWatchedFromTheLastVersion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var lists atomic.Int32
	listed, watches := make(chan string, 10), 0
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			version := "1000"
			if lists.Add(1) > 1 {
				version = "800" // it was restored
			}
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, errors.New("it cannot do that")
			}
			watches++
			if watches < 3 {
				return nil, syscall.ECONNREFUSED // the reflector would go on where it was
			}
			listed <- options.ResourceVersion
			return watch.NewFake(), nil
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		FollowBy(ctx, listWatch, &corev1.ConfigMap{}, cache.NewStore(cache.MetaNamespaceKeyFunc), func(error) {})
	}()
	if version := <-listed; version != "800" {
		t.Errorf("it is watched from %s", version)
	}
	cancel()
	<-done
}

func TestWhoFollowsIsToldThatTheServerIsAwayBeforeAWatchGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var refused, broken atomic.Bool
	watched := make(chan *watch.FakeWatcher, 10)
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if refused.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			if broken.CompareAndSwap(true, false) { // client-go's answer if the connection breaks now
				return watch.NewEmptyWatch(), nil
			}
			w := watch.NewFake()
			watched <- w
			return w, nil
		},
	}
	done, outcomes := make(chan struct{}), make(chan error, 100)
	go func() {
		defer close(done)
		FollowBy(ctx, listWatch, &corev1.ConfigMap{}, cache.NewStore(cache.MetaNamespaceKeyFunc), func(err error) { outcomes <- err })
	}()
	until := func(what string, is func(error) bool) {
		t.Helper()
		for err := range outcomes {
			if is(err) {
				return
			}
		}
		t.Fatal(what)
	}
	first := <-watched
	until("that it is watched", func(err error) bool { return err == nil })
	refused.Store(true)
	first.Stop()
	until("that it is away", func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) })
	refused.Store(false)
	second := <-watched
	until("that it is watched again", func(err error) bool { return err == nil })
	broken.Store(true)
	second.Stop()
	until("that the connection broke while a watch was begun", func(err error) bool { return errors.Is(err, errInterrupted) })
	<-watched
	until("that it is watched once more", func(err error) bool { return err == nil })
	cancel()
	<-done
}
