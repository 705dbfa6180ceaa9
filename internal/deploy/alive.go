package deploy

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/agent/deployer"
)

// answer tells the agent something.
func (d *duties) answer(a deployer.Answer) {
	d.saying.Lock()
	defer d.saying.Unlock()
	if err := a.Send(d.answers); err != nil {
		d.log.Info("telling the agent failing", "reason", err.Error())
	}
}

// live tells the agent until ctx ends that the process is not stuck. It takes the locks that everything else takes.
func (d *duties) live(ctx context.Context) {
	ticker := time.NewTicker(deployer.AlivePeriod)
	defer ticker.Stop()
	for {
		d.mu.Lock()
		deploys := d.deploys
		d.mu.Unlock()
		if deploys != nil {
			deploys.touch()
		}
		d.answer(deployer.Answer{Alive: true})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// touch returns when nobody holds the lock for ever.
func (d *Deployer) touch() {
	d.mu.Lock()
	defer d.mu.Unlock()
}

// leaseFailing says why the Lease cannot be asked for. What a person has to mend is told on the hub; the API server that does not answer is not.
func (d *duties) leaseFailing(err error) {
	d.log.Info("waiting to deploy", "reason", err.Error())
	if !apierrors.IsForbidden(err) {
		return
	}
	for _, kind := range []deployer.Kind{deployer.Bundles, deployer.Works} {
		d.answer(deployer.Answer{Kind: kind, Failing: err.Error()})
	}
}
