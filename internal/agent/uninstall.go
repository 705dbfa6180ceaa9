package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
	"github.com/muster-fleet/muster/internal/uninstall"
)

// uninstallTimeout bounds one step of the agent's own removal.
const uninstallTimeout = 2 * time.Minute

// uninstallProgress is the progress of the agent's own removal.
type uninstallProgress struct {
	// prepared is set once one request removes everything. message describes the step before, or the
	// obstacle to it.
	prepared bool
	message  string
}

// uninstallAsked reports whether the agent removes itself after it has left. The caller holds the
// lock.
func (s *session) uninstallAsked() bool {
	return s.report.Spec.State == clusterv1beta1.ClusterStateLeave && s.report.Spec.UninstallAgent && !s.report.Spec.Quarantined &&
		s.deployment != "" && !s.delivery.Off
}

// uninstallOnRequest removes the agent at the request of the hub, until ctx ends. Once nothing is
// left that the leave policy removes, it prepares the removal. The agent then reports that it has
// left. It goes only after the hub has accepted this report.
func (s *session) uninstallOnRequest(ctx context.Context) {
	for backoff := retry.Unreachable(); ctx.Err() == nil; {
		step := s.nextUninstall()
		if step == nil {
			backoff = retry.Unreachable()
			waitFor(ctx, s.uninstallDue)
			continue
		}
		if err := step(ctx); err != nil && ctx.Err() == nil {
			s.log.Info("Failed to remove the agent", "reason", err.Error())
			_ = retry.Wait(ctx, s.clock, backoff.Step()) // the loop ends with ctx
		}
	}
}

// nextUninstall returns the next step of the agent's own removal; nil if it waits for something
// else.
func (s *session) nextUninstall() func(context.Context) error {
	keepsAll := s.keepsAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.uninstallAsked(), !keepsAll && !s.removal.done && !s.left:
		return nil
	case !s.uninstall.prepared:
		return s.prepareUninstall
	case s.left:
		return s.finishUninstall
	}
	return nil
}

// uninstalling reports whether Kubernetes may already be deleting the objects of the agent.
func (s *session) uninstalling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uninstallAsked() && (s.uninstall.prepared || s.left)
}

func (s *session) setUninstall(progress uninstallProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uninstall = progress
	kubeclient.Notify(s.reportChanged)
}

func (s *session) prepareUninstall(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, uninstallTimeout)
	defer cancel()
	cluster := s.member.Uninstall()
	found, err := cluster.Find(ctx, s.ownDeployment())
	if err == nil {
		s.setUninstall(uninstallProgress{message: fmt.Sprintf("removing the agent with its %d objects", len(found.Objects))})
		err = cluster.Prepare(ctx, found)
	}
	if err != nil {
		remedy := ""
		if errors.Is(err, uninstall.ErrNotProved) {
			remedy = "; to keep the agent, take the annotation " + clusterv1beta1.AnnotationUninstallAgent + " off"
		}
		s.setUninstall(uninstallProgress{message: "the agent cannot be removed: " + err.Error() + remedy})
		return err
	}
	for _, sentence := range found.Stays {
		s.log.Info("An object stays on the cluster after the agent", "reason", sentence)
	}
	s.setUninstall(uninstallProgress{prepared: true})
	return nil
}

// finishUninstall deletes the rights of the agent, and with them the agent. The end of its Pod ends
// ctx.
func (s *session) finishUninstall(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, uninstallTimeout)
	defer cancel()
	if _, err := s.member.Uninstall().Resume(limited, s.ownDeployment()); err != nil {
		return err
	}
	s.log.Info("The agent is removed from this cluster, as requested by the hub")
	<-ctx.Done()
	return nil
}

func (e *environment) ownDeployment() types.NamespacedName {
	return types.NamespacedName{Namespace: e.member.Namespace, Name: e.deployment}
}

// resumeUninstall completes the removal of an agent that was killed after it had reported that it
// left. The hub may have ended its access since.
func (e *environment) resumeUninstall(ctx context.Context) {
	if e.deployment == "" || e.delivery.Off {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, uninstallTimeout)
	defer cancel()
	if removed, err := e.member.Uninstall().Resume(ctx, e.ownDeployment()); err != nil && ctx.Err() == nil {
		e.log.Info("Failed to remove the agent", "reason", err.Error())
	} else if removed != nil {
		e.log.Info("The agent is removed from this cluster, as requested by the hub")
	}
}
