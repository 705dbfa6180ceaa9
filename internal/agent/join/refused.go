package join

import (
	"cmp"
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// refused returns the reason why the hub refuses a request, with the remedy.
func (j *Joiner) refused(hub *hubclient.Hub, result hubclient.Result, err error) string {
	switch {
	case j.Bootstrap.Login != nil && result == hubclient.Unauthorized:
		return fmt.Sprintf("the hub at %s refuses %s: it does not trust the issuer of this identity, or the credential was revoked",
			hub.Server(), j.Bootstrap.loginRef())
	case j.Bootstrap.Login != nil && result == hubclient.Forbidden:
		return fmt.Sprintf("%s may not register clusters in workspace %s: have an administrator of the hub grant create, get, list and watch on "+
			"clusterregistrations there, and register on clusterregistrationtokens/%s", j.Bootstrap.loginRef(), j.Bootstrap.Workspace,
			j.Bootstrap.TokenName)
	case j.Bootstrap.Login != nil && result == hubclient.Invalid:
		return fmt.Sprintf("%s; correct clientID or labels in the chart's values, or have an administrator of the hub grant register on "+
			"clusterregistrationtokens/%s", hub.Explain(err), j.Bootstrap.TokenName)
	}
	switch result {
	case hubclient.Unauthorized:
		return j.badToken(hub.Now())
	case hubclient.Forbidden:
		return j.badWorkspace()
	case hubclient.NotFound:
		return fmt.Sprintf("workspace %s does not exist on the hub at %s: set clusterNamespace to the namespace of the ClusterRegistrationToken",
			j.Bootstrap.Workspace, hub.Server())
	case hubclient.Invalid:
		return fmt.Sprintf("%s; correct clientID or labels in the chart's values", hub.Explain(err))
	default:
		return hub.Explain(err)
	}
}

// loginRef names the identity of a kubeconfig.
func (b Bootstrap) loginRef() string { return fmt.Sprintf("%s in secret %s", b.Login, b.LoginSecret) }

func (j *Joiner) badToken(now time.Time) string {
	const remedy = "create another ClusterRegistrationToken and install the chart with its values.yaml"
	claims := j.Bootstrap.Claims
	switch {
	case claims.Subject == "":
		return fmt.Sprintf("the hub does not know the token in secret %s: copy it again from the values.yaml, or %s", j.secret(), remedy)
	case !claims.Expires.IsZero() && !now.Before(claims.Expires):
		return fmt.Sprintf("token %s expired at %s; %s", j.token(), claims.Expires.UTC().Format(time.RFC3339), remedy)
	default:
		return fmt.Sprintf("the hub refuses token %s, which has not expired: it was deleted or revoked, or is another hub's; %s",
			j.token(), remedy)
	}
}

func (j *Joiner) badWorkspace() string {
	home := j.Bootstrap.Claims.Namespace
	if home != "" && home != j.Bootstrap.Workspace {
		return fmt.Sprintf("token %s belongs to workspace %s and may not register clusters in workspace %s: set clusterNamespace to %s, or use "+
			"a token of %s",
			j.token(), home, j.Bootstrap.Workspace, home, j.Bootstrap.Workspace)
	}
	return fmt.Sprintf("token %s may not register clusters in workspace %s: the workspace is gone or being deleted, or the hub has not given "+
		"the token its right: is muster-hub running there?", j.token(), j.Bootstrap.Workspace)
}

// token names the ClusterRegistrationToken, as far as it is known.
func (j *Joiner) token() string {
	namespace := cmp.Or(j.Bootstrap.Claims.Namespace, j.Bootstrap.Workspace)
	if name := cmp.Or(j.Bootstrap.TokenName, j.Bootstrap.Claims.Account); name != "" {
		return namespace + "/" + name
	}
	return "in secret " + j.secret()
}

func (j *Joiner) secret() string { return j.Member.Namespace + "/" + naming.AgentBootstrapSecret }
