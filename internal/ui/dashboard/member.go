package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// mostMoments limits the moments in a member's timeline.
const mostMoments = 50

// Tabs of the page of a member.
const (
	tabOverview   = "overview"
	tabDeliveries = "deliveries"
	tabTimeline   = "timeline"
	tabAccess     = "access"
	tabYAML       = "yaml"
)

// tab is a part of the page of a member.
type tab struct {
	Name, Text string
	read       func(*shownMember, context.Context, *Server, *visitor, client.Object) error
}

var memberTabs = []tab{
	{tabOverview, "Overview", (*shownMember).readOverview},
	{tabDeliveries, "Deliveries", (*shownMember).readDeliveries},
	{tabTimeline, "Timeline", (*shownMember).readTimeline},
	{tabAccess, "Access", (*shownMember).readAccess},
	{tabYAML, "YAML", (*shownMember).readYAML},
}

// shownMember is the view of one member. Each tab reads only its own data.
type shownMember struct {
	Title, Name, State string
	Created, LastSeen  time.Time
	Online             bool
	// Old reports whether the figures date from before the loss of the member.
	Old  bool
	UID  types.UID
	Tab  string
	Tabs []tab
	// Decisions holds the decisions about the member. Drain is its drain by the visitor in this
	// process, and Progress the drain by others; nil without one.
	Decisions []offer
	Drain     *shownDrain
	Progress  *shownProgress
	Labels    map[string]string
	Facts     []fact
	Findings  []explain.Finding
	Life      []moment
	Bands     *bands
	Delay     *delayPlot
	Usage     []usage
	// Deliveries are the trees of deliveries, Tree are the objects on the hub.
	Deliveries []branch
	More       int
	Tree       *view.Node
	Access     *access
	YAML       *document
	// Unseen holds the unreadable data, with the reasons.
	Unseen []string
}

// fact is a column of the table of members.
type fact struct{ Name, Value string }

// moment is an event in the life of a member.
type moment struct {
	At         time.Time
	What, Text string
	Bad        bool
}

// usage is the requested amount of a resource on the member's nodes.
type usage struct {
	Name, Used, Of string
	Share          float64
}

// Path returns the path of a tab.
func (m *shownMember) Path(tab string) string {
	if tab == tabOverview {
		return memberPath(m.Name)
	}
	return memberPath(m.Name) + "?tab=" + tab
}

// member is the view of one member, read as the visitor.
func (s *Server) member(w http.ResponseWriter, r *http.Request, v *visitor) error {
	name := cmp.Or(r.URL.Query().Get("tab"), tabOverview)
	i := slices.IndexFunc(memberTabs, func(t tab) bool { return t.Name == name })
	if i < 0 {
		return &inputError{fmt.Errorf("the page of a member has no tab %q", name)}
	}
	live, stale, err := s.follow(r, v, clusters, memberClusters)
	if err != nil {
		return err
	}
	record, err := readMember(r, v)
	if err != nil {
		return err
	}
	m := &shownMember{
		Title: view.Title(record), Name: view.NameOf(record), State: view.State(record), Labels: record.GetLabels(), UID: record.GetUID(),
		Drain: s.drains.of(record, v.name), Progress: drainShownOn(record, time.Now()),
		Created: record.GetCreationTimestamp().Time, LastSeen: view.LastSeen(record),
		Online: view.Column(record, "LAST-SEEN", time.Now()) == "online", Tab: name, Tabs: memberTabs,
	}
	m.Old = toneOf(m.State) == toneCritical
	if m.Decisions, err = s.decisionsAbout(r.Context(), v, record); err != nil {
		return err
	}
	if err := memberTabs[i].read(m, r.Context(), s, v, record); err != nil {
		return err
	}
	return s.show(w, r, v, "member", page{
		Title: m.Name, View: "fleet", Stale: stale, Live: live, Crumbs: crumbs("Fleet", fleetPath, m.Name), Body: m,
	})
}

func (m *shownMember) note(errs ...error) {
	for _, err := range errs {
		if err != nil {
			m.Unseen = append(m.Unseen, err.Error())
		}
	}
}

// readOverview reads the explanation, the facts and the capacity.
func (m *shownMember) readOverview(ctx context.Context, _ *Server, v *visitor, record client.Object) error {
	row := view.Row(record, time.Now())
	for i, name := range view.MemberColumns {
		if i > 2 && name != "WHY" && name != "LAST-SEEN" && row[i] != view.Nothing { // the rest is in the heading and the explanation
			label := name
			if c := columnOf(columnOfView[name]); c != nil {
				label = c.Label
			}
			m.Facts = append(m.Facts, fact{label, row[i]})
		}
	}
	related, unseen := view.Related(ctx, v, record)
	m.Findings = explain.Of(append([]client.Object{record}, related...)...)
	m.note(unseen...)
	m.readUsage(ctx, v, record)
	return nil
}

// columnOfView are the columns of the dashboard's table for columns of the command line.
var columnOfView = map[string]string{
	"NODES": "nodes", "BUNDLES": "bundles", "VERSION": "version", "AGENT": "agent", "EXPIRES": "expires",
}

// readDeliveries reads the deliveries, and the objects on the hub.
func (m *shownMember) readDeliveries(ctx context.Context, _ *Server, v *visitor, record client.Object) error {
	deliveries, tree := view.Delivered(ctx, v, record)
	m.Deliveries, m.More = atMost(mostTargets, deliveredTree(deliveries))
	m.Tree = tree
	return nil
}

// readTimeline reads the conditions, delays of heartbeats, Events and audit entries.
func (m *shownMember) readTimeline(ctx context.Context, _ *Server, v *visitor, record client.Object) error {
	m.Life, m.Bands, m.Delay = momentsOf(record), bandsOf(record, time.Now()), delaysOfMember(record, time.Now())
	m.readEvents(ctx, v, record)
	m.readAudit(ctx, v, record)
	slices.SortStableFunc(m.Life, func(a, b moment) int { return b.At.Compare(a.At) })
	m.Life = m.Life[:min(mostMoments, len(m.Life))]
	return nil
}
