package work

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// entry is what became of a manifest when it was last tried.
type entry struct {
	// hash of the manifest that was tried.
	hash    string
	outcome outcome
	// as is the object as it was applied.
	as record
	// rival is who else wrote the object last.
	rival string
	// tries counts the failures, or the corrections of the same object, in a row; the last was at triedAt.
	tries   int
	triedAt time.Time
}

// ledger remembers what was tried, and what has been noticed since. It only saves asking: an agent that starts with an empty
// one applies everything once more, which changes nothing that is as it should be.
type ledger struct {
	mu    sync.Mutex
	wake  func(work string)
	pages map[string]*page
	// wants leads from an object to the Works with a manifest of it.
	wants map[key]map[string]bool
}

// page is about one Work.
type page struct {
	uid        types.UID
	generation int64
	manifests  []manifest
	entries    map[key]entry
	noticed    map[key]bool
}

// wakeBy sets how a Work is brought to attention.
func (l *ledger) wakeBy(wake func(work string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake = wake
}

// awake brings Works to attention.
func (l *ledger) awake(works []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake == nil {
		return
	}
	for _, work := range works {
		l.wake(work)
	}
}

// open returns the manifests of a Work, what became of them, and of which something has been noticed since the last time.
func (l *ledger) open(work *placement.Work) (manifests []manifest, entries map[key]entry, noticed map[key]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pages[work.Name]
	if p == nil || p.uid != work.UID {
		l.drop(work.Name)
		p = &page{uid: work.UID, generation: -1, entries: map[key]entry{}, noticed: map[key]bool{}}
		if l.pages == nil {
			l.pages, l.wants = map[string]*page{}, map[key]map[string]bool{}
		}
		l.pages[work.Name] = p
	}
	if p.generation != work.Generation {
		l.unwant(work.Name, p)
		p.generation, p.manifests = work.Generation, manifestsOf(work)
		for k := range p.entries {
			p.noticed[k] = true // the strategy may be another
		}
		for _, m := range p.manifests {
			if l.wants[m.key] == nil {
				l.wants[m.key] = map[string]bool{}
			}
			l.wants[m.key][work.Name] = true
		}
	}
	noticed, p.noticed = p.noticed, map[key]bool{}
	return p.manifests, maps.Clone(p.entries), noticed
}

// keep remembers what became of the manifests of a Work.
func (l *ledger) keep(work string, entries map[key]entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pages[work]; p != nil {
		p.entries = entries
	}
}

// forget drops a Work that is gone.
func (l *ledger) forget(work string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(work)
}

func (l *ledger) drop(work string) {
	if p := l.pages[work]; p != nil {
		l.unwant(work, p)
		delete(l.pages, work)
	}
}

func (l *ledger) unwant(work string, p *page) {
	for _, m := range p.manifests {
		delete(l.wants[m.key], work)
		if len(l.wants[m.key]) == 0 {
			delete(l.wants, m.key)
		}
	}
}

// noticed brings to attention every Work that an object concerns; what waits for a namespace or a kind, whenever one of those changes.
func (l *ledger) noticed(before, after *record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := before
	if after != nil {
		of = after
	}
	concerned := maps.Clone(l.wants[of.key])
	if concerned == nil {
		concerned = map[string]bool{}
	}
	for _, name := range append(before.works(), after.works()...) {
		concerned[name] = true
	}
	for name := range concerned {
		if p := l.pages[name]; p != nil {
			p.noticed[of.key] = true
		}
	}
	if of.key.basic() {
		for name, p := range l.pages {
			for k, e := range p.entries {
				if e.outcome.waits {
					p.noticed[k], concerned[name] = true, true
				}
			}
		}
	}
	if l.wake == nil {
		return
	}
	for name := range concerned {
		l.wake(name)
	}
}
