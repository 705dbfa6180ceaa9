package kube

import (
	"maps"
	"sync"
)

// Memory is the knowledge of a controller about objects, beyond the objects themselves: one value
// for each key, such as a name or a UID. The zero Memory is empty, and safe for concurrent use.
//
// A value stays until its key is forgotten, so the controller forgets the key with its object. With
// a UID as the key, a re-created object is a new one.
type Memory[K comparable, T any] struct {
	mu     sync.Mutex
	values map[K]T
}

// Get returns the value of a key, and whether there is one.
func (m *Memory[K, T]) Get(key K) (value T, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, found = m.values[key]
	return value, found
}

// Of returns the value of a key. Without one, it stores and returns the given value.
func (m *Memory[K, T]) Of(key K, first T) T {
	value, _ := m.of(key, first)
	return value
}

// Add stores a value for a key without one, and reports whether it did.
func (m *Memory[K, T]) Add(key K, value T) bool {
	_, added := m.of(key, value)
	return added
}

func (m *Memory[K, T]) of(key K, first T) (value T, added bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, found := m.values[key]; found {
		return value, false
	}
	m.set(key, first)
	return first, true
}

// Set stores the value of a key.
func (m *Memory[K, T]) Set(key K, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, value)
}

func (m *Memory[K, T]) set(key K, value T) {
	if m.values == nil {
		m.values = map[K]T{}
	}
	m.values[key] = value
}

// Take returns the value of a key and forgets it.
func (m *Memory[K, T]) Take(key K) (value T, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, found = m.values[key]
	delete(m.values, key)
	return value, found
}

// Forget drops the value of a key.
func (m *Memory[K, T]) Forget(key K) { m.Take(key) }

// ForgetIf drops the value of a key if it is still the given one.
func ForgetIf[K, T comparable](m *Memory[K, T], key K, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values[key] == value {
		delete(m.values, key)
	}
}

// ForgetWhere drops the values selected by unused. unused must not use the Memory.
func (m *Memory[K, T]) ForgetWhere(unused func(K, T) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.values, unused)
}
