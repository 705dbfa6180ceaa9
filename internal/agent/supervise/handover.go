package supervise

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// handover decides about the watch for a store: the agent's own, or the program's while the program
// watches. Each watch begins with a list of all objects, so a change from one to the other loses no
// event.
type handover struct {
	mu sync.Mutex
	// byProgram is set while the program watches; changed signals each change of it.
	byProgram bool
	changed   chan struct{}
	// cancel ends the agent's watch, and ended is closed after its end; nil unless it runs.
	cancel context.CancelFunc
	ended  chan struct{}
	// listing holds the objects listed by the program so far, by name; nil unless it lists. Only the
	// reader of replies uses it.
	listing map[string]*metav1.PartialObjectMetadata
}

// Watch runs follow to fill the store until ctx ends, except while the program watches.
func (p *Placed) Watch(ctx context.Context, follow func(context.Context)) {
	for ctx.Err() == nil {
		watching, end := p.handover.begin(ctx)
		if watching == nil {
			select {
			case <-ctx.Done():
			case <-p.handover.changed:
			}
			continue
		}
		follow(watching)
		suspended := watching.Err() != nil
		end()
		if !suspended {
			return
		}
	}
}

// begin begins the agent's watch; it returns nil if the program watches.
func (h *handover) begin(ctx context.Context) (watching context.Context, end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byProgram {
		return nil, nil
	}
	watching, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	h.cancel, h.ended = cancel, ended
	return watching, func() {
		cancel()
		close(ended)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cancel, h.ended = nil, nil
	}
}

// suspend ends the agent's watch. After it returns, this watch no longer writes into the store.
func (h *handover) suspend() {
	h.mu.Lock()
	h.byProgram = true
	cancel, ended := h.cancel, h.ended
	h.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

// resume begins the agent's watch again.
func (h *handover) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byProgram, h.listing = false, nil
	kubeclient.Notify(h.changed)
}

func (h *handover) isByProgram() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byProgram
}

// handleEvent handles an event of the program's watch.
func (p *Placed) handleEvent(event protocol.Event) error {
	h := &p.handover
	switch event.Type {
	case protocol.EventListing:
		h.listing = map[string]*metav1.PartialObjectMetadata{}
	case protocol.EventListed:
		return p.takeList()
	case protocol.EventEnded:
		h.resume()
	case protocol.EventPut, protocol.EventDeleted:
		if event.Object == nil {
			return nil
		}
		object := event.Object.Metadata()
		switch is := event.Type == protocol.EventPut; {
		case h.listing != nil && is:
			h.listing[object.Name] = object
		case h.listing != nil:
			delete(h.listing, object.Name)
		case !h.isByProgram(): // it came after EventEnded
		case is:
			return p.Update(object)
		default:
			return p.Delete(object)
		}
	}
	return nil
}

// takeList replaces the store with the objects listed by the program.
func (p *Placed) takeList() error {
	if p.handover.listing == nil {
		return nil
	}
	list := make([]any, 0, len(p.handover.listing))
	for _, object := range p.handover.listing {
		list = append(list, object)
	}
	p.handover.listing = nil
	p.handover.suspend()
	if err := p.Replace(list, ""); err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	p.fromProgram = true
	return nil
}

// takeBack resumes the agent's watch after the program ended. A program ends by itself if it found
// nothing to do, perhaps in a newer state than it passed on. The objects then count only after the
// agent has listed them.
func (p *Placed) takeBack(clean bool) {
	p.Lock()
	p.unsure = clean && p.fromProgram
	p.Unlock()
	p.handover.resume()
}

// isUnsure reports whether the objects come from an earlier program and have not been listed since.
func (p *Placed) isUnsure() bool {
	p.Lock()
	defer p.Unlock()
	return p.unsure
}
