package cli

// migrateLong is the description of muster migrate in its help.
const migrateLong = `Replace Rancher Fleet or KubeFleet by Muster, on a hub or on its members. Migrate the hub
first, and then its members. The command continues an interrupted migration, and --dry-run
prints the steps only.

With member contexts, migrate replaces the agents one after the other, and stops at the
first failure. The Cluster or MemberCluster, its labels and its deliveries stay. The hub of
the current context must run Muster. A member of another Rancher Fleet hub moves to this
hub, into the workspace of --namespace, and its old credential stays on the cluster. --back
restores the earlier agent from the revision of its Helm release, and moves such a member
back to the other hub.

Without member contexts, migrate replaces the hub; members stay joined meanwhile.

- Rancher Fleet: the command stops the Deployments of the hub, and installs Muster's charts
  in its Helm releases.
- KubeFleet: the command stops the hub agent without removing it, deletes its webhooks, and
  installs Muster's charts. The webhooks would reject every change without the hub agent.

Placements, overrides and envelopes act with the rights of their author on Muster's hub.
KubeFleet stores no authors: you become the author of all without one, unless you set
--authors=false.`

// migrateExample has the examples of muster migrate in its help.
const migrateExample = `  # Migrate a KubeFleet hub, and then its members
  muster migrate --from kubefleet --context hub --dry-run
  muster migrate --from kubefleet --context hub
  muster migrate --from kubefleet --context hub edge-1 edge-2

  # Migrate a Rancher Fleet hub
  muster migrate --from rancher-fleet --context hub --dry-run
  muster migrate --from rancher-fleet --context hub

  # Migrate a member of this hub, or of another Rancher Fleet hub
  muster migrate --from rancher-fleet --context hub edge-1 --dry-run
  muster migrate --from rancher-fleet --context hub edge-1

  # Restore the earlier agent
  muster migrate --from rancher-fleet --context hub edge-1 --back

  # Remove the accounts and rights of the earlier agent
  muster migrate --from rancher-fleet --context hub edge-1 --remove-leftovers`
