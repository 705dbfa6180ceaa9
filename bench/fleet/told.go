package main

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/muster-fleet/muster/internal/agent/deployer"
)

// reply tells the agent something.
func (p *program) reply(r deployer.Reply) {
	p.telling.Lock()
	defer p.telling.Unlock()
	_ = r.Send(p.replies) // the agent reads to the end
}

// told is a store whose events the agent is told, so that it does not watch the kind itself.
func (p *program) told(kind deployer.Kind, store cache.ReflectorStore) cache.ReflectorStore {
	return deployer.Telling{ReflectorStore: store, Tell: func(e deployer.Event) { p.reply(deployer.Reply{Kind: kind, Event: &e}) }}
}

// countWork counts what failed about a Work.
func (p *program) countWork(err error) {
	if err != nil && p.ctx.Err() == nil && !apierrors.IsNotFound(err) {
		p.deployed.fail(err)
	}
}
