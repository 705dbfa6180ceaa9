package work

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	delivered "github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/cause"
)

// attempt is the last attempt to apply or compare a manifest.
type attempt struct {
	// hash is the hash of the attempted manifest.
	hash    string
	outcome outcome
	// as is the object after it was applied.
	as summary
	// rival is the last other manager of the object.
	rival string
	// tries counts the consecutive failures, or corrections of the same object; triedAt is the time of
	// the last.
	tries   int
	triedAt time.Time
}

// tracker stores the last attempt at each manifest of each Work, and the objects changed since. It
// only saves requests: an agent with an empty tracker applies every manifest once more, and
// unchanged objects stay unchanged.
type tracker struct {
	mu    sync.Mutex
	wake  func(work string)
	works map[string]*trackedWork
	// worksOf are the Works with a manifest of an object.
	worksOf map[key]map[string]bool
}

// trackedWork is the state of one Work.
type trackedWork struct {
	uid        types.UID
	generation int64
	manifests  []manifest
	attempts   map[key]attempt
	changed    map[key]bool
	// ended are the Jobs this agent saw end.
	ended map[key]applied.Run
	// looks is of the only pass over the Work at a time.
	looks cause.Looks
}

// enqueueBy sets the function to enqueue a Work.
func (t *tracker) enqueueBy(wake func(work string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake = wake
}

// enqueue enqueues Works.
func (t *tracker) enqueue(works []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wake == nil {
		return
	}
	for _, work := range works {
		t.wake(work)
	}
}

// open returns the manifests of a Work, the last attempts, the objects changed since the last pass,
// and the ended Jobs.
func (t *tracker) open(work *placement.Work) (
	manifests []manifest, attempts map[key]attempt, changed map[key]bool, ended map[key]applied.Run,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.works[work.Name]
	if p == nil || p.uid != work.UID {
		t.drop(work.Name)
		p = &trackedWork{uid: work.UID, generation: -1, attempts: map[key]attempt{}, changed: map[key]bool{}, ended: map[key]applied.Run{}}
		if t.works == nil {
			t.works, t.worksOf = map[string]*trackedWork{}, map[key]map[string]bool{}
		}
		t.works[work.Name] = p
	}
	if p.generation != work.Generation {
		t.unwant(work.Name, p)
		p.generation, p.manifests = work.Generation, manifestsOf(work)
		for k, e := range p.attempts {
			p.changed[k] = true // the strategy may have changed
			if e.as.scaler != nil {
				e.as.scaler = &delivered.Bounds{Max: delivered.NoReplicas} // the autoscaler may have changed
				p.attempts[k] = e
			}
		}
		for _, m := range p.manifests {
			if t.worksOf[m.key] == nil {
				t.worksOf[m.key] = map[string]bool{}
			}
			t.worksOf[m.key][work.Name] = true
		}
	}
	changed, p.changed = p.changed, map[key]bool{}
	return p.manifests, maps.Clone(p.attempts), changed, maps.Clone(p.ended)
}

// looksOf returns the looks at the objects of a Work.
func (t *tracker) looksOf(work string) *cause.Looks {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.works[work]; p != nil {
		return &p.looks
	}
	return &cause.Looks{}
}

// keep stores the attempts of a pass.
func (t *tracker) keep(work string, attempts map[key]attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.works[work]; p != nil {
		p.attempts = attempts
	}
}

// give enqueues a Work to take over an object.
func (t *tracker) give(work string, k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.works[work]; p != nil {
		p.changed[k] = true
	}
	if t.wake != nil {
		t.wake(work)
	}
}

// forget drops a deleted Work.
func (t *tracker) forget(work string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(work)
}

func (t *tracker) drop(work string) {
	if p := t.works[work]; p != nil {
		t.unwant(work, p)
		delete(t.works, work)
	}
}

func (t *tracker) unwant(work string, p *trackedWork) {
	for _, m := range p.manifests {
		delete(t.worksOf[m.key], work)
		if len(t.worksOf[m.key]) == 0 {
			delete(t.worksOf, m.key)
		}
	}
}

// changed enqueues each Work of an object. A Namespace or CustomResourceDefinition also enqueues
// each Work with a waiting manifest.
func (t *tracker) changed(before, after *summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := before
	if after != nil {
		current = after
	}
	concerned := maps.Clone(t.worksOf[current.key])
	if concerned == nil {
		concerned = map[string]bool{}
	}
	for _, name := range append(before.works(), after.works()...) {
		concerned[name] = true
	}
	for name := range concerned {
		if p := t.works[name]; p != nil {
			p.changed[current.key] = true
			if current.ended != "" {
				p.ended[current.key] = applied.Run{Hash: current.hash, UID: current.uid}.End(current.ended, current.readiness.Message)
			}
		}
	}
	if current.key.basic() {
		for name, p := range t.works {
			for k, e := range p.attempts {
				if e.outcome.waits {
					p.changed[k], concerned[name] = true, true
				}
			}
		}
	}
	if t.wake == nil {
		return
	}
	for name := range concerned {
		t.wake(name)
	}
}
