package contentaccess

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// waiter is a namespace with callers of add that have not returned yet.
type waiter struct {
	uid     types.UID
	callers int
}

// exclude refuses a namespace until readmit.
func (b *binding) exclude(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.withdrawn == nil {
		b.withdrawn = map[string]bool{}
	}
	if _, known := b.withdrawn[namespace]; !known {
		b.withdrawn[namespace] = false
	}
}

// readmit ends the refusal of a namespace. It reports whether to bind the account again, because
// it was bound, or was to be bound meanwhile.
func (b *binding) readmit(namespace string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted := b.withdrawn[namespace]
	delete(b.withdrawn, namespace)
	return wanted
}

// enlist queues the account of a namespace for the next writer, unless it is bound already. After
// true, add must follow.
func (b *binding) enlist(namespace string, uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] == uid || b.refuses(namespace) {
		return false
	}
	if b.waiting == nil {
		b.waiting = map[string]*waiter{}
	}
	if b.waiting[namespace] == nil {
		b.waiting[namespace] = &waiter{}
	}
	b.waiting[namespace].uid = uid
	b.waiting[namespace].callers++
	return true
}

// delist ends the wait of one caller.
func (b *binding) delist(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[namespace].callers--; b.waiting[namespace].callers == 0 {
		delete(b.waiting, namespace)
	}
}

// refuses reports whether a namespace must not be added now, and notes it for later. The caller
// holds mu.
func (b *binding) refuses(namespace string) bool {
	_, withdrawn := b.withdrawn[namespace]
	if withdrawn {
		b.withdrawn[namespace] = true
	}
	return withdrawn
}

// withWaiting returns the bound namespaces, the waiting ones, and the given one. It returns nil
// if another writer has bound the namespace meanwhile.
func (b *binding) withWaiting(namespace string, uid types.UID) namespaces {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] == uid || b.refuses(namespace) {
		return nil
	}
	all := maps.Clone(b.bound)
	for name, w := range b.waiting {
		all[name] = w.uid
	}
	all[namespace] = uid
	maps.DeleteFunc(all, func(name string, _ types.UID) bool { return b.refuses(name) })
	return all
}
