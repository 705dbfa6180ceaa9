package restore

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestAWatchGoesOnOnlyWhereItsServerGotTo(t *testing.T) {
	ctx := context.Background()
	now, lists := "10", []string{}
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	timeout := int64(300)
	lw := survive(NewServer(), &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			lists = append(lists, options.ResourceVersion)
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: now}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, clk)
	goesOn := func(from string) error {
		_, err := lw.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: &timeout})
		return err
	}
	list := func(from string) {
		if _, err := lw.ListWithContext(ctx, metav1.ListOptions{ResourceVersion: from}); err != nil {
			t.Fatal(err)
		}
	}
	list("0")
	if err := goesOn("10"); err != nil || len(lists) != 1 {
		t.Errorf("the watch after a list: %v, after %d lists, want no more than the first", err, len(lists))
	}
	if err := goesOn("10"); err != nil || len(lists) != 2 {
		t.Errorf("the watch after one that was broken off before anything happened: %v, after %d lists, want another one", err, len(lists))
	}
	clk.SetTime(clk.Now().Add(5 * time.Minute))
	if err := goesOn("20"); err != nil || len(lists) != 2 {
		t.Errorf("the watch after one whose time was over: %v, after %d lists, want no more", err, len(lists))
	}
	now = "30"
	if err := goesOn("20"); err != nil {
		t.Errorf("a watch that was broken off: %v", err)
	}
	now = "15"
	if err := goesOn("20"); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch of a restored server: %v", err)
	}
	if list("20"); lists[len(lists)-1] != "" {
		t.Errorf("what is there after a restore was listed from %q, want as it is now", lists[len(lists)-1])
	}
	if err := goesOn("15"); err != nil {
		t.Errorf("the watch after that: %v", err)
	}
	if list("15"); lists[len(lists)-1] != "15" {
		t.Errorf("the next list was from %q, want 15", lists[len(lists)-1])
	}
}

func TestAListInPagesIsOfTheNewestAndNotStreamed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var asked []metav1.ListOptions
	of := &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			asked = append(asked, options)
			page := &corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "of " + options.Continue}}}}
			page.ResourceVersion = "10"
			if options.Continue == "" {
				page.Continue = "more"
			}
			return page, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil || options.ResourceVersion != "10" {
				t.Errorf("it watches with %+v", options)
			}
			cancel()
			return watch.NewFake(), nil
		},
	}
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	_ = toolscache.NewReflector(InPages(of), &corev1.ConfigMap{}, store, 0).ListAndWatchWithContext(ctx)
	if len(asked) != 2 || asked[0].ResourceVersion != "" || asked[0].Limit == 0 || asked[1].Continue != "more" || len(store.List()) != 2 {
		t.Errorf("it listed %d objects with %+v", len(store.List()), asked)
	}
}
