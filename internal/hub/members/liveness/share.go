package liveness

// tenth: a share is calm while at most one in this many members is offline.
const tenth = 10

// share counts the members of a workspace, or of the hub, and those online. A member without a
// heartbeat in this process is not online.
type share struct {
	// workspace is the name of the workspace; empty for the hub.
	workspace       string
	members, online int
	// waiting holds the member namespaces to announce once the share is calm.
	waiting map[string]bool
}

func (s *share) calm() bool { return (s.members-s.online)*tenth <= s.members }

// Count counts a tracked member in its workspace and in the hub. A MemberCluster has no workspace.
func (t *Tracker) Count(namespace, workspace string) {
	defer t.announceCalm()
	t.mu.Lock()
	defer t.mu.Unlock()
	m, tracked := t.members[namespace]
	if !tracked || len(m.shares) > 0 {
		return
	}
	m.shares = []*share{&t.hub}
	if workspace != "" {
		of := t.workspaces[workspace]
		if of == nil {
			of = &share{workspace: workspace}
			t.workspaces[workspace] = of
		}
		m.shares = append(m.shares, of)
	}
	t.add(m, 1)
	t.collectCalm(m)
}

// Calm reports whether at most a tenth of the members of the hub, and of the member's workspace,
// send no heartbeats. If it returns false, the tracker announces the member after the share has
// become calm.
func (t *Tracker) Calm(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, tracked := t.members[namespace]
	if !tracked || len(m.shares) == 0 {
		return false
	}
	for _, s := range m.shares {
		if s.calm() {
			continue
		}
		if s.waiting == nil {
			s.waiting = map[string]bool{}
		}
		s.waiting[namespace] = true
		return false
	}
	return true
}

// change sets the state of a member. The caller holds the lock.
func (t *Tracker) change(m *member, state State) {
	t.add(m, -1)
	m.state = state
	t.add(m, 1)
	t.collectCalm(m)
}

// uncount removes a member from its shares. The caller holds the lock.
func (t *Tracker) uncount(m *member) {
	t.add(m, -1)
	for _, s := range m.shares {
		if delete(s.waiting, m.namespace); s.members == 0 && s.workspace != "" {
			delete(t.workspaces, s.workspace)
		}
	}
	t.collectCalm(m)
}

// add counts a member once more or once less. The caller holds the lock.
func (t *Tracker) add(m *member, by int) {
	for _, s := range m.shares {
		s.members += by
		if m.state == Online {
			s.online += by
		}
	}
}

// collectCalm takes the members waiting for a calm share of m. The caller holds the lock.
func (t *Tracker) collectCalm(m *member) {
	for _, s := range m.shares {
		if len(s.waiting) == 0 || !s.calm() {
			continue
		}
		for namespace := range s.waiting {
			t.calmed = append(t.calmed, namespace)
		}
		s.waiting = nil
	}
}

// announceCalm announces the collected members. The caller does not hold the lock.
func (t *Tracker) announceCalm() {
	t.mu.Lock()
	calmed := t.calmed
	t.calmed = nil
	t.mu.Unlock()
	for _, namespace := range calmed {
		t.notify(namespace)
	}
}
