package agent

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
)

// reasonNotRunning is that of the conditions of what is not deployed because the deployer does not run.
const reasonNotRunning = "DeployerNotRunning"

// Delivery says how BundleDeployments are carried out.
type Delivery struct {
	// Path is where the program is that does it.
	Path string
	// Arguments tell it how to reach the member.
	Arguments []string
	// Off leaves them alone and says so.
	Off bool
}

// deliver runs the deployer as long as there is something to deploy.
func (r *runner) deliver(ctx context.Context) {
	placed := deployer.NewPlaced()
	supervisor := &deployer.Supervisor{
		Path: r.delivery.Path, Arguments: r.delivery.Arguments, Order: r.order, Renewed: r.renewed, Placed: placed,
		Left:   func(ctx context.Context) (bool, error) { return r.member.Delivered(ctx, string(r.session.Report.UID)) },
		Report: r.undelivered, Log: r.log, Clock: r.clock,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if r.delivery.Off {
			r.refuse(ctx, placed)
			return
		}
		supervisor.Run(ctx)
	}()
	failing := false
	r.session.FollowDeployments(ctx, placed, func(err error) {
		if err != nil && !failing {
			r.log.Info("watching BundleDeployments failing", "reason", r.session.Explain(err))
		}
		failing = err != nil
	})
	<-ended
}

// refuse tells each deployment that nothing comes of it.
func (r *runner) refuse(ctx context.Context, placed *deployer.Placed) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-placed.Changed:
		}
		r.undelivered(ctx, placed.Names(), "nothing is deployed on this cluster, because its agent was installed with fleetAgent.delivery=false")
	}
}

func (r *runner) order() deployer.Order {
	return deployer.Order{
		Hub: r.session.Target(), Token: r.held.Load().Token, Namespace: r.session.Namespace, Name: r.session.Name, Member: string(r.session.Report.UID),
	}
}

// undelivered tells on the hub why nothing is deployed; the deployer writes there otherwise.
func (r *runner) undelivered(ctx context.Context, names []string, sentence string) {
	now := r.clock.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) fleet.Condition {
		return fleet.Condition{
			Type: kind, Status: corev1.ConditionFalse, Reason: reasonNotRunning, Message: sentence, LastUpdateTime: now, LastTransitionTime: now,
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []fleet.Condition{condition(fleet.ConditionDeployed), condition(fleet.ConditionMonitored), condition(fleet.ConditionReady)},
		"display": fleet.BundleDeploymentDisplay{
			Deployed: "False: " + sentence, Monitored: "False: " + sentence, State: string(fleet.StateErrApplied),
		},
	}})
	for _, name := range names {
		if err == nil {
			err = r.session.ReportDeployment(ctx, name, patch)
		}
		if err != nil {
			r.log.Info("reporting a deployment failing", "deployment", name, "reason", r.session.Explain(err))
			return
		}
	}
}
