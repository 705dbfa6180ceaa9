package kube

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contents returns all keys and values.
func contents(m *Memory[string, int]) map[string]int {
	all := map[string]int{}
	m.ForgetWhere(func(key string, value int) bool {
		all[key] = value
		return false
	})
	return all
}

func TestWhatAMemoryKeeps(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(m *Memory[string, int])
		want map[string]int
	}{
		"nothing at first":                      {func(*Memory[string, int]) {}, map[string]int{}},
		"forgetting an unknown key is no error": {func(m *Memory[string, int]) { m.Forget("a") }, map[string]int{}},
		"the last value that was set":           {func(m *Memory[string, int]) { m.Set("a", 1); m.Set("a", 2) }, map[string]int{"a": 2}},
		"the first value that was added":        {func(m *Memory[string, int]) { m.Add("a", 1); m.Add("a", 2) }, map[string]int{"a": 1}},
		"the first value that was asked for":    {func(m *Memory[string, int]) { m.Of("a", 1); m.Of("a", 2) }, map[string]int{"a": 1}},
		"a forgotten key has no value": {func(m *Memory[string, int]) {
			m.Set("a", 1)
			m.Set("b", 2)
			m.Forget("a")
		}, map[string]int{"b": 2}},
		"a key that was taken has no value": {func(m *Memory[string, int]) { m.Set("a", 1); m.Take("a") }, map[string]int{}},
		"a value that has changed is not forgotten": {func(m *Memory[string, int]) {
			m.Set("a", 2)
			ForgetIf(m, "a", 1)
		}, map[string]int{"a": 2}},
		"a value that has not changed is forgotten": {func(m *Memory[string, int]) { m.Set("a", 1); ForgetIf(m, "a", 1) }, map[string]int{}},
		"only the values that are unused are dropped": {func(m *Memory[string, int]) {
			m.Set("a", 1)
			m.Set("b", 2)
			m.ForgetWhere(func(_ string, value int) bool { return value == 1 })
		}, map[string]int{"b": 2}},
	} {
		var m Memory[string, int]
		row.do(&m)
		if diff := cmp.Diff(row.want, contents(&m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatAMemoryReturns(t *testing.T) {
	var m Memory[string, int]
	if value, found := m.Get("a"); found || value != 0 {
		t.Errorf("an unknown key has the value %d", value)
	}
	if value, found := m.Take("a"); found || value != 0 {
		t.Errorf("an unknown key was taken with the value %d", value)
	}
	if !m.Add("a", 1) || m.Add("a", 2) {
		t.Error("a key is added twice, or not at all")
	}
	if first, next := m.Of("a", 3), m.Of("b", 4); first != 1 || next != 4 {
		t.Errorf("the values are %d and %d, want the stored 1 and the new 4", first, next)
	}
	if value, found := m.Take("a"); !found || value != 1 {
		t.Errorf("the taken value is %d, %t", value, found)
	}
}

// TestOneOfManyAdds has many goroutines add one key, while others forget another one.
func TestOneOfManyAdds(t *testing.T) {
	var m Memory[string, *int]
	var added atomic.Int64
	var running sync.WaitGroup
	for i := range 100 {
		running.Go(func() {
			if m.Add("a", &i) {
				added.Add(1)
			}
			if m.Of("b", &i) == nil {
				t.Error("a key that others forget has no value")
			}
			m.Forget("b")
		})
	}
	running.Wait()
	if added.Load() != 1 {
		t.Errorf("%d of 100 have added the key", added.Load())
	}
}
