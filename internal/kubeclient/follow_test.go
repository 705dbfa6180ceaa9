package kubeclient

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
