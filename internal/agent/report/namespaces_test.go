package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func namespace(name string, change ...func(*corev1.Namespace)) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, c := range change {
		c(n)
	}
	return n
}

func TestNamespacesAreReportedWithTheWorkThatBroughtThem(t *testing.T) {
	owned := func(apiVersion, kind, name string) func(*corev1.Namespace) {
		return func(n *corev1.Namespace) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name}}
		}
	}
	deleted := func(n *corev1.Namespace) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	n := newNamespaces(make(chan struct{}, 1))
	if c := n.collection(); c.answered || c.listed {
		t.Errorf("before anything is known it says %+v", c)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(n.Replace([]any{
		namespace("kube-system"), namespace("shop", owned("placement.kubernetes-fleet.io/v1beta1", "AppliedWork", "crp-work")),
		namespace("other", owned("example.com/v1", "AppliedWork", "x")), namespace("going", deleted), namespace("soon"),
	}, ""))
	check(n.Add(namespace("new")))
	check(n.Update(namespace("soon", deleted)))
	check(n.Delete(namespace("other")))
	want := map[string]string{"kube-system": "", "shop": "crp-work", "new": ""}
	got := n.collection()
	if diff := cmp.Diff(want, got.owners); diff != "" || !got.listed || got.more {
		t.Errorf("listed %t, more %t (-want +got):\n%s", got.listed, got.more, diff)
	}
}

func TestOfManyNamespacesTheFirstAreReported(t *testing.T) {
	n := newNamespaces(make(chan struct{}, 1))
	var all []any
	for i := range maxNamespaces + 50 {
		all = append(all, namespace(fmt.Sprintf("n-%03d", i)))
	}
	if err := n.Replace(all, ""); err != nil {
		t.Fatal(err)
	}
	before := n.collection()
	_, first := before.owners["n-000"]
	_, last := before.owners["n-249"]
	if len(before.owners) != maxNamespaces || !before.more || !first || last {
		t.Errorf("%d are reported, more %t, the first %t, the last %t", len(before.owners), before.more, first, last)
	}
	if err := n.Delete(namespace("n-249")); err != nil {
		t.Fatal(err)
	}
	if !n.collection().equal(before) {
		t.Error("what is not reported makes a difference to the report")
	}
	r := &Reporter{}
	now := time.Unix(1000, 0)
	said := r.status(facts{namespaces: before}, nil, now).Conditions
	if len(said) != 1 || said[0].Type != "NamespaceCollectionSucceeded" || said[0].Status != "False" || said[0].Reason != "Degraded" {
		t.Errorf("it says %+v", said)
	}
	said = r.status(facts{namespaces: collection{listed: true, owners: map[string]string{"a": ""}}}, nil, now).Conditions
	if len(said) != 1 || said[0].Status != "True" || said[0].Reason != "Succeeded" {
		t.Errorf("it says %+v", said)
	}
}
