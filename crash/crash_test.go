package crash

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/testkube"
)

var (
	all      = flag.Bool("all", false, "try all points, not a sample")
	seed     = flag.Uint64("seed", 0, "choose a sample, the same one for the same number")
	only     = flag.String("scenario", "", "only these scenarios, such as join,rollout")
	program  = flag.String("program", "", "only the calls of this program: hub, gitops, agent or deployer")
	onlyThis = flag.String("fault", "", "only this fault: "+strings.Join(faults, ", "))
	points   = flag.Int("points", 4, "how many points with faults of each scenario are in a sample")
	two      = flag.Bool("two", false, "two faults in each run of a sample, the second one at a later call")
	where    = flag.String("point", "", "only this point, as a failed test names it, such as 'hub PATCH clusters/status 2'")
)

// longestWait is longer than what the hub leaves for later: a sealed answer that a killed hub has
// not withdrawn goes with the next heartbeat that is shown, five minutes after the last one.
const longestWait = 7 * time.Minute

// sampled is how many scenarios a sample takes.
const sampled = 3

// proven are the scenarios of which docs/reliability.md says that they survive a
// kill at every point.
var proven = []string{"join", "rollout"}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testkube.Main(m))
}

// TestPoints runs scenarios, each first undisturbed, and then disturbed at one call at a time.
func TestPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs control planes")
	}
	if !*all && *seed == 0 && *where == "" {
		*seed = uint64(time.Now().UnixNano())
		if *only == "" {
			*only, *onlyThis, *points = proven[*seed%uint64(len(proven))], "kill", 3
		}
		t.Logf("a sample, as of go test ./crash -args -scenario %s -fault %q -points %d -seed %d -two=%t", *only, *onlyThis, *points, *seed, *two)
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	chosen := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool {
		return *only != "" && !slices.Contains(strings.Split(*only, ","), s.name)
	})
	if !*all && *where == "" {
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:min(sampled, len(chosen))]
	}
	r := newRig(t)
	r.undisturbed(t, scenarios[0]) // with the first member the hub makes what all have in common
	for _, s := range chosen {
		t.Run(s.name, func(t *testing.T) { r.disturb(t, s, random) })
	}
}

// disturbance is a fault at a point.
type disturbance struct {
	point
	fault string
}

func (d disturbance) String() string { return d.fault + " at " + d.point.String() }

// trial is a fault, or two in a row.
type trial []disturbance

func (t trial) String() string {
	var texts []string
	for _, d := range t {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, ", then ")
}

// kind is the name of a trial's row in the results.
func (t trial) kind() string {
	if len(t) > 1 {
		return twoFaults
	}
	return t[0].fault
}

// twoFaults is the name of two faults in a row.
const twoFaults = "two"

// disturb runs a scenario once undisturbed and then with each trial.
func (r *rig) disturb(t *testing.T, s scenario, random *rand.Rand) {
	want, made := r.undisturbed(t, s)
	if *all {
		again, _ := r.undisturbed(t, s)
		if differences := want.differences(again); len(differences) > 0 {
			t.Fatalf("two undisturbed runs differ, so nothing can be said of others:\n%s", strings.Join(differences, "\n"))
		}
	}
	results := map[string]*result{}
	for _, trial := range trials(made, random) {
		of := trial.kind()
		if results[of] == nil {
			results[of] = &result{}
		}
		begun := time.Now()
		passed := t.Run(trial.String(), func(t *testing.T) {
			if !r.survives(t, s, trial, want) {
				results[of].missed++
			}
		})
		results[of].add(passed, time.Since(begun))
	}
	for _, fault := range append(slices.Clone(faults), twoFaults) {
		if of := results[fault]; of != nil {
			t.Logf("| %s | %s | %s |", s.name, fault, of)
		}
	}
}

// result counts the trials of one fault in one scenario.
type result struct {
	tried, survived, missed int
	took, longest           time.Duration
}

func (r *result) add(survived bool, took time.Duration) {
	r.tried++
	if survived {
		r.survived++
	}
	r.took += took
	r.longest = max(r.longest, took)
}

// String is the end of a row of the table in docs/reliability.md. What was not
// reached was not tried.
func (r *result) String() string {
	return fmt.Sprintf("%d | %d | %d | %.1f | %.1f", r.tried-r.missed, r.survived-r.missed, r.missed,
		r.took.Seconds()/float64(r.tried), r.longest.Seconds())
}

// trials are all points that were asked for with their faults, or some of them.
func trials(made []point, random *rand.Rand) (chosen []trial) {
	var every []disturbance
	for _, fault := range faults {
		for _, p := range made {
			asked := (*program == "" || p.program == *program) && (*where == "" || p.String() == *where) && (*onlyThis == "" || fault == *onlyThis)
			if asked && applies(fault, p) {
				every = append(every, disturbance{p, fault})
			}
		}
	}
	if !*all && *where == "" {
		random.Shuffle(len(every), func(i, j int) { every[i], every[j] = every[j], every[i] })
	}
	if *two {
		return pairs(every, made)
	}
	for _, d := range every {
		chosen = append(chosen, trial{d})
	}
	if !*all && *where == "" {
		return chosen[:min(*points, len(chosen))]
	}
	return chosen
}

// pairs joins each disturbance with the next one in the list at a later call, up to a number.
func pairs(every []disturbance, made []point) (chosen []trial) {
	for i, first := range every {
		later := slices.IndexFunc(every[i+1:], func(d disturbance) bool {
			return slices.Index(made, d.point) > slices.Index(made, first.point)
		})
		if later >= 0 && len(chosen) < *points {
			chosen = append(chosen, trial{first, every[i+1+later]})
		}
	}
	return chosen
}

// undisturbed runs a scenario and returns how it ends, and the calls that were made.
func (r *rig) undisturbed(t *testing.T, s scenario) (end snapshot, made []point) {
	t.Helper()
	t.Run("undisturbed", func(t *testing.T) {
		in := r.begin(t)
		s.prepare(in)
		r.wire.listen(in.own, nil)
		defer r.wire.end()
		s.act(in)
		end = in.settled()
		made, _ = r.wire.end()
		for _, program := range s.programs {
			if !slices.ContainsFunc(made, func(p point) bool { return p.program == program }) {
				t.Errorf("no call of the %s was seen", program)
			}
		}
		calls := map[string]int{}
		for _, p := range made {
			calls[p.program]++
		}
		t.Logf("it makes %d calls: %v", len(made), calls)
	})
	if t.Failed() {
		t.FailNow()
	}
	return end, made
}

// settled waits until nothing has changed for a while. If that was too early, no other run ends so.
func (in *run) settled() snapshot {
	in.t.Helper()
	last, since := snapshot{}, time.Now()
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	in.eventually("the undisturbed run settles", func() error {
		<-pace.C
		now, planes := in.snapshot()
		if differences := last.differences(now); len(differences) > 0 {
			last, since = now, time.Now()
			return fmt.Errorf("it changes: %s", strings.Join(differences, "\n"))
		}
		if wrong := check(in.known, planes); len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "\n"))
		}
		if time.Since(since) < 4*time.Second {
			return errors.New("it has just changed")
		}
		return nil
	})
	return last
}

// survives runs a scenario with a trial and waits until it ends as it should. It reports whether
// the scenario reached all points.
func (r *rig) survives(t *testing.T, s scenario, at trial, want snapshot) (reached bool) {
	in := r.begin(t)
	s.prepare(in)
	r.wire.listen(in.own, at)
	defer r.wire.end()
	s.act(in)
	pace := time.NewTicker(time.Second) // to read everything costs the API servers more than what is tried
	defer pace.Stop()
	testkube.Within(t, longestWait, "the end is that of the undisturbed run", func() error {
		<-pace.C
		in.runPods()
		got, planes := in.snapshot()
		if wrong := append(check(in.known, planes), want.differences(got)...); len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "\n"))
		}
		return nil
	})
	_, reached = r.wire.end()
	if !reached {
		t.Logf("not all points were reached")
	}
	return reached
}
