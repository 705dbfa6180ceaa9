package main

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// reply sends a reply to the agent.
func (p *program) reply(r protocol.Reply) {
	p.telling.Lock()
	defer p.telling.Unlock()
	_ = r.Send(p.replies) // the agent reads to the end
}

// told returns a store that also sends its events to the agent, so that the agent does not watch
// the kind itself.
func (p *program) told(kind protocol.Kind, store cache.ReflectorStore) cache.ReflectorStore {
	return protocol.Telling{ReflectorStore: store, Tell: func(e protocol.Event) { p.reply(protocol.Reply{Kind: kind, Event: &e}) }}
}

// countWork counts a failure about a Work.
func (p *program) countWork(err error) {
	if err != nil && p.ctx.Err() == nil && !apierrors.IsNotFound(err) {
		p.deployed.fail(err)
	}
}
