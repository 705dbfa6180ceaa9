package registration

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// asked is a request with nothing wrong about it.
func asked(change ...func(*observed)) observed {
	o := observed{
		workspace: "clusters", created: start, life: time.Hour, clientID: "id", native: true, tokenName: "t", token: tokenValid,
		newName: "cluster-1", displacement: settings.DisplaceApproved,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func matching(c clusterView) func(*observed) {
	return func(o *observed) { o.matches = append(o.matches, c) }
}

func TestDecide(t *testing.T) {
	ready := clusterView{name: "c", prepared: true, namespace: membernamespace.NamespaceOurs, memberNamespace: "ns"}
	with := func(change func(*clusterView)) clusterView {
		c := ready
		change(&c)
		return c
	}
	const (
		waiting  = fleet.RegistrationWaiting
		conflict = fleet.RegistrationConflict
		pending  = fleet.RegistrationPending
		deniedAs = fleet.RegistrationDenied
		granted  = fleet.RegistrationGranted
	)
	for _, c := range []struct {
		name string
		seen observed
		// after is how old the request is.
		after time.Duration
		want  decision
		// says must be in the message; the rest of it is not compared.
		says string
	}{
		{name: "an unknown client ID gets a new Cluster", seen: asked(),
			want: decision{
				state: waiting, reason: "Preparing", cluster: "cluster-1", action: createCluster, quiet: true, wake: start.Add(quietWait),
			}},
		{name: "and says so if that takes long", seen: asked(), after: quietWait,
			want: decision{state: waiting, reason: "Preparing", cluster: "cluster-1", action: createCluster, wake: start.Add(time.Hour)},
			says: "being created"},
		{name: "a Cluster with a member namespace is granted", seen: asked(matching(ready)),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a Cluster without one is waited for", seen: asked(matching(with(func(c *clusterView) { c.prepared = false }))),
			want: decision{state: waiting, reason: "Preparing", cluster: "c", quiet: true, wake: start.Add(quietWait)}},
		{name: "a namespace that has not been seen yet is waited for", seen: asked(matching(with(func(c *clusterView) {
			c.namespace = membernamespace.NamespaceAbsent
		}))),
			want: decision{state: waiting, reason: "Preparing", cluster: "c", quiet: true, wake: start.Add(quietWait)}},
		{name: "a namespace of somebody else is told at once", seen: asked(matching(with(func(c *clusterView) {
			c.namespace = membernamespace.NamespaceTaken
		}))),
			want: decision{state: waiting, reason: "NamespaceTaken", cluster: "c", wake: start.Add(time.Hour)}, says: "namespace ns exists"},
		{name: "a namespace that is going is waited for", seen: asked(matching(with(func(c *clusterView) {
			c.namespace = membernamespace.NamespaceTerminating
		}))),
			want: decision{state: waiting, reason: "NamespaceTerminating", cluster: "c", wake: start.Add(time.Hour)}, says: "ns is being deleted"},
		{name: "a Cluster that is revoked lets nobody in", seen: asked(matching(with(func(c *clusterView) { c.revoked = true }))),
			want: decision{state: deniedAs, reason: "Revoked", cluster: "c", wake: start.Add(time.Hour)},
			says: "kubectl -n clusters annotate cluster.fleet.cattle.io c muster/revoked-"},
		{name: "not even who has the pinned key", seen: asked(matching(with(func(c *clusterView) { c.revoked, c.holder = true, sameHolder }))),
			want: decision{state: deniedAs, reason: "Revoked", cluster: "c", wake: start.Add(time.Hour)}},
		{name: "nor who was approved", seen: asked(func(o *observed) { o.reason, o.approvedFor = reasons.HolderAlive, reasons.HolderAlive },
			matching(with(func(c *clusterView) { c.revoked, c.holder = true, holderAlive }))),
			want: decision{state: deniedAs, reason: "Revoked", cluster: "c", wake: start.Add(time.Hour)}},
		{name: "what was asked during a revocation stays denied after it",
			seen: asked(func(o *observed) { o.reason, o.cluster, o.message = "Revoked", "c", "as before" }, matching(ready)),
			want: decision{state: deniedAs, reason: "Revoked", cluster: "c", wake: start.Add(time.Hour)}, says: "as before"},
		{name: "also while a newer request is there, which may go again",
			seen: asked(func(o *observed) { o.reason, o.cluster, o.newer = "Revoked", "c", "r" }, matching(ready)),
			want: decision{state: deniedAs, reason: "Revoked", cluster: "c", wake: start.Add(time.Hour)}},
		{name: "a Cluster that is leaving is waited for", seen: asked(matching(with(func(c *clusterView) { c.deleting = true }))),
			want: decision{state: waiting, reason: "ClusterLeaving", cluster: "c", wake: start.Add(time.Hour)}, says: "being deleted"},
		{name: "two Clusters with the client ID are a conflict",
			seen: asked(matching(with(func(c *clusterView) { c.name = "b" })), matching(with(func(c *clusterView) { c.name = "a" }))),
			want: decision{state: conflict, reason: "AmbiguousClientID", wake: start.Add(time.Hour)}, says: "Clusters a and b"},
		{name: "a derived name that another client ID has is a conflict", seen: asked(func(o *observed) { o.newNameTaken = true }),
			want: decision{state: conflict, reason: "NameTaken", cluster: "cluster-1", wake: start.Add(time.Hour)},
			says: "Cluster clusters/cluster-1 exists"},
		{name: "an empty client ID matches nothing", seen: asked(func(o *observed) { o.clientID = "" }, matching(ready)),
			want: decision{state: deniedAs, reason: "ClientIDMissing", wake: start.Add(time.Hour)}, says: "spec.clientID is empty"},
		{name: "a client ID of 5 kB is refused", seen: asked(func(o *observed) { o.clientID = strings.Repeat("x", 5000) }),
			want: decision{state: deniedAs, reason: "ClientIDTooLong", wake: start.Add(time.Hour)}, says: "5000 characters, at most 4096"},
		{name: "a label that Kubernetes refuses is refused", seen: asked(func(o *observed) { o.labelProblem = "label a has" }),
			want: decision{state: deniedAs, reason: "InvalidLabels", wake: start.Add(time.Hour)}, says: "label a has"},
		{name: "but labels do not matter to a Cluster that exists", seen: asked(matching(ready), func(o *observed) {
			o.labelProblem = "label a has"
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a key that is none is refused", seen: asked(func(o *observed) { o.keyProblem = "no key" }),
			want: decision{state: deniedAs, reason: "InvalidAnswerKey", wake: start.Add(time.Hour)}, says: "no key"},
		{name: "a request for another hub is refused", seen: asked(matching(ready), func(o *observed) {
			o.hubCAProblem = "made for another hub"
		}),
			want: decision{state: deniedAs, reason: "OtherHub", wake: start.Add(time.Hour)}, says: "made for another hub"},
		{name: "the key of a quarantined Cluster registers no other", seen: asked(func(o *observed) { o.quarantined = "q" }),
			want: decision{state: deniedAs, reason: "Quarantined", wake: start.Add(time.Hour)}, says: "the key of Cluster clusters/q"},
		{name: "a token that is gone is refused", seen: asked(matching(ready), func(o *observed) { o.token = tokenMissing }),
			want: decision{state: deniedAs, reason: "TokenNotFound", wake: start.Add(time.Hour)}, says: "clusters/t does not exist"},
		{name: "a token that has expired is refused", seen: asked(matching(ready), func(o *observed) { o.token = tokenExpired }),
			want: decision{state: deniedAs, reason: "TokenExpired", wake: start.Add(time.Hour)}, says: "clusters/t has expired"},
		{name: "a token that the hub made to import a Cluster registers that", seen: asked(matching(ready), func(o *observed) {
			o.limits = tokenLimits{cluster: "c", mustExist: true}
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "and no other", seen: asked(matching(ready), func(o *observed) { o.limits = tokenLimits{cluster: "d", mustExist: true} }),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)}, says: "registers Cluster d only"},
		{name: "nor a new one, if it was deleted meanwhile", seen: asked(func(o *observed) {
			o.limits = tokenLimits{cluster: "d", mustExist: true}
		}),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)}, says: "or is gone"},
		{name: "a token for one Cluster creates that", seen: asked(func(o *observed) { o.limits.cluster, o.newName = "d", "d" }),
			want: decision{state: waiting, reason: "Preparing", cluster: "d", action: createCluster, quiet: true, wake: start.Add(quietWait)}},
		{name: "but does not replace one of that name with another client ID", seen: asked(func(o *observed) {
			o.limits.cluster, o.newName, o.newNameTaken = "d", "d", true
		}),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)}, says: "registers Cluster d only"},
		{name: "nor registers a cluster that is another one already", seen: asked(matching(ready), func(o *observed) { o.limits.cluster = "d" }),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)}, says: "registers Cluster d only"},
		{name: "a token for one client ID registers that", seen: asked(matching(ready), func(o *observed) { o.limits.clientID = "id" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "and no other, and does not say which", seen: asked(matching(ready), func(o *observed) { o.limits.clientID = "another" }),
			want: decision{state: deniedAs, reason: "TokenBoundElsewhere", wake: start.Add(time.Hour)},
			says: "the client ID in its spec.clientID only"},
		{name: "a token that is used up registers nothing new", seen: asked(func(o *observed) {
			o.limits.most, o.limits.used = 1, []string{"d"}
		}),
			want: decision{state: deniedAs, reason: "TokenUsedUp", wake: start.Add(time.Hour)}, says: "has registered its 1 Clusters"},
		{name: "but again what it has registered", seen: asked(matching(ready), func(o *observed) {
			o.limits.most, o.limits.used = 1, []string{"c"}
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a token with approval waits", seen: asked(func(o *observed) { o.limits.approval, o.name = fleet.ApprovalManual, "request-x" }),
			want: decision{state: pending, reason: "ApprovalRequired", wake: start.Add(approvalLife)},
			says: "kubectl -n clusters annotate clusterregistration request-x muster/approved=true"},
		{name: "a token whose expression is false waits and quotes it", seen: asked(func(o *observed) {
			o.limits.approval, o.expressionSays = fleet.ApprovalCEL, "native is false for this request"
		}),
			want: decision{state: pending, reason: "ApprovalRequired", wake: start.Add(approvalLife)},
			says: "its spec.approvalExpression native is false for this request: muster approve requests clusters/"},
		{name: "and goes on by itself if it is true", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.expressionTrue = fleet.ApprovalCEL, true
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "or if somebody approves", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.expressionSays, o.approved, o.reason = fleet.ApprovalCEL, "native is false", "true", "ApprovalRequired"
		}), want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "where nobody knows the token of a request, it waits in a workspace with limited tokens",
			seen: asked(matching(ready), func(o *observed) {
				o.attribution, o.limitedTokens = attribution{reason: "PolicyMissing", problem: "the policy has no effect",
					recheck: start.Add(time.Minute)}, true
			}), want: decision{state: pending, reason: "NotAttributed", wake: start.Add(time.Minute)},
			says: "the policy has no effect; or approve it: muster approve requests"},
		{name: "and goes on when somebody approves it", seen: asked(matching(ready), func(o *observed) {
			o.attribution, o.limitedTokens, o.reason, o.approved = attribution{reason: "PolicyMissing", problem: "the policy has no effect"},
				true, "NotAttributed", "true"
		}), want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "who approved it for its token has not approved that", seen: asked(matching(ready), func(o *observed) {
			o.attribution, o.limitedTokens, o.reason, o.approvedFor = attribution{problem: "no effect"}, true, "Preparing", "ApprovalRequired"
		}), want: decision{state: pending, reason: "NotAttributed", wake: start.Add(approvalLife)}},
		{name: "where no token has a limit it is granted", seen: asked(matching(ready), func(o *observed) {
			o.attribution = attribution{problem: "no effect", recheck: start.Add(time.Minute)}
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "an expression that is true displaces nobody", seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })),
			func(o *observed) { o.limits.approval, o.expressionTrue = fleet.ApprovalCEL, true }),
			want: decision{state: pending, reason: "HolderAlive", wake: start.Add(approvalLife)}},
		{name: "an expression that is wrong grants nothing, also what somebody approves", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.expressionProblem, o.approved, o.reason = fleet.ApprovalCEL, "it returns int", "true", "TokenInvalid"
		}), want: decision{state: pending, reason: "TokenInvalid", wake: start.Add(approvalLife)},
			says: "ClusterRegistrationToken clusters/t cannot be used: it returns int"},
		{name: "and creates nothing for a request that came approved", seen: asked(func(o *observed) {
			o.limits.approval, o.approved = fleet.ApprovalManual, "true"
		}),
			want: decision{state: pending, reason: "ApprovedTooEarly", wake: start.Add(approvalLife)}, says: "muster/approved- and then"},
		{name: "nor later", seen: asked(func(o *observed) {
			o.limits.approval, o.approved, o.reason = fleet.ApprovalManual, "true", "ApprovedTooEarly"
		}),
			want: decision{state: pending, reason: "ApprovedTooEarly", wake: start.Add(approvalLife)}},
		{name: "what is approved after the hub asked is granted", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.approved, o.reason = fleet.ApprovalManual, "true", "ApprovalRequired"
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "and stays approved", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.approvedFor, o.reason, o.approved = fleet.ApprovalManual, "ApprovalRequired", "Preparing", "true"
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "but not by what the status alone says", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.approvedFor, o.reason = fleet.ApprovalManual, "ApprovalRequired", "Preparing"
		}),
			want: decision{state: pending, reason: "ApprovalRequired", wake: start.Add(approvalLife)}},
		{name: "a status that says that the key was proved is no proof of the key",
			seen: asked(matching(with(func(c *clusterView) { c.reconnect = true })), func(o *observed) {
				o.token, o.reconnecting, o.approvedFor = tokenUnnamed, true, reasons.KeyProved
			}),
			want: decision{state: deniedAs, reason: "ReconnectRefused", wake: start.Add(time.Hour)}},
		{name: "but that of a request with the key is remembered while its identity is replaced",
			seen: asked(matching(with(func(c *clusterView) { c.reconnect, c.ownKey = true, true })), func(o *observed) {
				o.token, o.reconnecting, o.approvedFor = tokenUnnamed, true, reasons.KeyProved
			}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "an agent of the lost hub has its key noted first", seen: asked(matching(with(func(c *clusterView) {
			c.reconnect, c.ownKey = true, true
		})), ofStandby), want: decision{state: waiting, reason: "KeyProved", cluster: "c", wake: start.Add(time.Hour)}},
		{name: "and comes back to its restored Cluster without an approval", seen: asked(matching(with(func(c *clusterView) {
			c.reconnect, c.ownKey = true, true
		})), ofStandby, func(o *observed) { o.approvedFor = reasons.KeyProved }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "an agent with another key does not, also with an approval", seen: asked(matching(with(func(c *clusterView) {
			c.reconnect = true
		})), ofStandby, func(o *observed) { o.approved, o.reason, o.approvedFor = "true", "HolderAlive", "HolderAlive" }),
			want: decision{state: deniedAs, reason: "ReconnectRefused", wake: start.Add(time.Hour)}},
		{name: "nor does a token of the standby make a Cluster", seen: asked(ofStandby),
			want: decision{state: deniedAs, reason: "ReconnectRefused", wake: start.Add(time.Hour)}},
		{name: "nor bring back a Cluster whose user wants a token", seen: asked(matching(with(func(c *clusterView) {
			c.ownKey = true
		})), ofStandby), want: decision{state: deniedAs, reason: "ReconnectRefused", wake: start.Add(time.Hour)}},
		{name: "a signed request counts once", seen: asked(matching(with(func(c *clusterView) { c.holder, c.replayed = sameHolder, true }))),
			want: decision{state: deniedAs, reason: "Replayed", wake: start.Add(time.Hour)},
			says: "kubectl -n clusters annotate cluster.fleet.cattle.io c muster/agent-key-used-"},
		{name: "what is denied is refused", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.approved, o.reason = fleet.ApprovalManual, "false", "ApprovalRequired"
		}),
			want: decision{state: deniedAs, reason: "NotApproved", wake: start.Add(time.Hour)}},
		{name: "and stays so", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.approved, o.reason = fleet.ApprovalManual, "false", "NotApproved"
		}),
			want: decision{state: deniedAs, reason: "NotApproved", wake: start.Add(time.Hour)}},
		{name: "also when nobody has the Cluster any more", seen: asked(matching(ready), func(o *observed) {
			o.approved, o.reason = "false", "HolderAlive"
		}),
			want: decision{state: deniedAs, reason: "NotApproved", wake: start.Add(time.Hour)}},
		{name: "also if it is the agent that comes back by its key",
			seen: asked(matching(with(func(c *clusterView) { c.holder, c.reconnect = sameHolder, true })), func(o *observed) {
				o.token, o.reconnecting, o.approved = tokenUnnamed, true, "false"
			}),
			want: decision{state: deniedAs, reason: "NotApproved", wake: start.Add(time.Hour)}},
		{name: "an approval that is neither is named", seen: asked(matching(ready), func(o *observed) {
			o.limits.approval, o.approved, o.reason = fleet.ApprovalManual, "yes", "ApprovalRequired"
		}),
			want: decision{state: pending, reason: "ApprovalRequired", wake: start.Add(approvalLife)}, says: "neither true nor false"},
		{name: "an upstream agent of which nobody knows the token is refused where tokens have limits",
			seen: asked(matching(ready), func(o *observed) { o.token, o.native, o.limitedTokens = tokenUnnamed, false, true }),
			want: decision{state: deniedAs, reason: "TokenUnknown", wake: start.Add(time.Hour)}},
		{name: "a Cluster with an agent that is alive keeps it", seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive }))),
			want: decision{state: pending, reason: "HolderAlive", wake: start.Add(approvalLife)},
			says: "Cluster clusters/c has a live agent"},
		{name: "also where the holder's being lost would do", seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })),
			func(o *observed) { o.displacement = settings.DisplaceLost }),
			want: decision{state: pending, reason: "HolderAlive", wake: start.Add(approvalLife)}},
		{name: "one with an agent that is lost, too", seen: asked(matching(with(func(c *clusterView) { c.holder = holderLost }))),
			want: decision{state: pending, reason: "HolderLost", wake: start.Add(approvalLife)}, says: "was lost or has left"},
		{name: "unless the settings say so", seen: asked(matching(with(func(c *clusterView) { c.holder = holderLost })), func(o *observed) {
			o.displacement = settings.DisplaceLost
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "or that any token displaces", seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })), func(o *observed) {
			o.displacement = settings.DisplaceAny
		}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "the same key is the same cluster", seen: asked(matching(with(func(c *clusterView) { c.holder = sameHolder }))),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a token for the Cluster displaces its agent",
			seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })), func(o *observed) { o.limits.cluster = "c" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "so does one for its client ID",
			seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })), func(o *observed) { o.limits.clientID = "id" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "and an approval that the hub has asked for", seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })),
			func(o *observed) { o.reason, o.approved = "HolderAlive", "true" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "also if the hub could not act on it at once", seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })),
			func(o *observed) { o.reason, o.approved, o.approvedFor = "Failed", "true", "HolderAlive" }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "who approved that a lost agent is replaced has not approved it of one that is alive",
			seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })), func(o *observed) {
				o.reason, o.approved = "HolderLost", "true"
			}),
			want: decision{state: pending, reason: "ApprovedTooEarly", wake: start.Add(approvalLife)}, says: "has a live agent"},
		{name: "nor who approved a new cluster", seen: asked(matching(with(func(c *clusterView) { c.holder = holderLost })), func(o *observed) {
			o.limits.approval, o.approvedFor, o.approved = fleet.ApprovalManual, "ApprovalRequired", "true"
		}),
			want: decision{state: pending, reason: "ApprovedTooEarly", wake: start.Add(approvalLife)}},
		{name: "but who approved it of one that is alive, of one that was lost since",
			seen: asked(matching(with(func(c *clusterView) { c.holder = holderLost })), func(o *observed) {
				o.reason, o.approved = "HolderAlive", "true"
			}),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "but not one that the request came with",
			seen: asked(matching(with(func(c *clusterView) { c.holder = holderAlive })), func(o *observed) { o.approved = "true" }),
			want: decision{state: pending, reason: "ApprovedTooEarly", wake: start.Add(approvalLife)}},
		{name: "a native agent has to name its token", seen: asked(matching(ready), func(o *observed) { o.token = tokenUnnamed }),
			want: decision{state: deniedAs, reason: "TokenUnknown", wake: start.Add(time.Hour)}, says: "names no ClusterRegistrationToken"},
		{name: "an upstream agent need not", seen: asked(matching(ready), func(o *observed) { o.token, o.native = tokenUnnamed, false }),
			want: decision{state: granted, reason: "Granted", cluster: "c", action: grant}},
		{name: "a newer request supersedes", seen: asked(matching(ready), func(o *observed) { o.newer = "request-2" }),
			want: decision{state: deniedAs, reason: "Superseded", wake: start.Add(time.Hour)}, says: "clusters/request-2"},
		{name: "what waits for approval is kept longer", seen: asked(func(o *observed) { o.limits.approval = fleet.ApprovalManual }),
			after: time.Hour,
			want:  decision{state: pending, reason: "ApprovalRequired", wake: start.Add(approvalLife)}},
		{
			name: "but not for ever", seen: asked(func(o *observed) { o.limits.approval = fleet.ApprovalManual }), after: approvalLife,
			want: decision{action: remove},
		},
		{
			name: "after an hour an unfinished request is removed", seen: asked(func(o *observed) { o.newNameTaken = true }), after: time.Hour,
			want: decision{action: remove},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decide(c.seen, start.Add(c.after))
			if !strings.Contains(got.message, c.says) {
				t.Errorf("message %q does not say %q", got.message, c.says)
			}
			got.message = ""
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnOwedTokenAndAFailureAreSaidWithinSecondsAndNotBefore(t *testing.T) {
	o := asked(matching(clusterView{name: "c"}))
	secret := types.NamespacedName{Namespace: "ns", Name: "agent-token"}
	end := start.Add(time.Hour)
	owed := decision{state: fleet.RegistrationWaiting, reason: "TokenNotIssued", cluster: "c", wake: end}
	broken := decision{state: fleet.RegistrationWaiting, reason: "Failed", cluster: "c"}
	quiet := func(d decision, wake time.Time) decision {
		d.quiet, d.wake = true, wake
		return d
	}
	cause := errors.New("creating Cluster clusters/c: it is forbidden")
	long := errors.New(strings.Repeat("ä", 1000))
	for _, c := range []struct {
		name      string
		got, want decision
		says      string
	}{
		{"a token that was just asked for is awaited in silence", awaitToken(o, secret, start, start), quiet(owed, start.Add(5*time.Second)), ""},
		{
			"after 5 s it is said what has to run", awaitToken(o, secret, start, start.Add(5*time.Second)), owed,
			"Secret ns/agent-token. The token controller of the hub cluster's kube-controller-manager",
		},
		{
			"a failure of a new request may be over in a moment", failed(decision{cluster: "c"}, start, cause, start),
			quiet(broken, time.Time{}), "",
		},
		{
			"one that lasts is said", failed(decision{cluster: "c"}, start, cause, start.Add(5*time.Second)), broken,
			"creating Cluster clusters/c: it is forbidden; the hub tries again",
		},
		{
			"but not at any length", failed(decision{cluster: "c"}, start, long, start.Add(5*time.Second)), broken,
			strings.Repeat("ä", 256) + "...; the hub tries again",
		},
	} {
		if !strings.Contains(c.got.message, c.says) || len(c.got.message) > 600 {
			t.Errorf("%s: message %q does not say %q", c.name, c.got.message, c.says)
		}
		c.got.message = ""
		if diff := cmp.Diff(c.want, c.got, cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestNoMessageTellsTheClientID(t *testing.T) {
	secret := strings.Repeat("s3cret", 1000)
	for _, o := range []observed{
		asked(func(o *observed) { o.clientID = secret }),
		asked(func(o *observed) { o.clientID, o.newNameTaken = "s3cret", true }),
		asked(func(o *observed) { o.clientID, o.newer = "s3cret", "r" }),
		asked(func(o *observed) { o.clientID = "s3cret" }, matching(clusterView{name: "a"}), matching(clusterView{name: "b"})),
	} {
		if d := decide(o, start); strings.Contains(d.message, "s3cret") {
			t.Errorf("%s: %q", d.reason, d.message)
		}
	}
}

// ofStandby is a request with a token of the standby.
func ofStandby(o *observed) {
	o.token, o.tokenName, o.reconnecting, o.standby = tokenUnnamed, "", true, true
}
