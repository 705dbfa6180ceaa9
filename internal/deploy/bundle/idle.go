package bundle

func (d *Deployer) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy++
	d.Idle(false)
}

func (d *Deployer) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
}

// reportIdle calls Idle if nothing is in the queue or in progress.
func (d *Deployer) reportIdle() {
	wanted := d.store.all()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy > 0 || d.queue.Len() > 0 {
		return
	}
	undecided := false
	for _, of := range d.deliveries {
		undecided = undecided || !of.removingSince.IsZero() || d.Clock.Now().Before(of.keepAt)
	}
	if !undecided {
		d.reportFirstProblems()
	}
	agentIdle := map[string]int64{}
	for _, deployment := range wanted {
		of := d.deliveries[deployment.Name]
		if of == nil || of.agentIdle != deployment.Generation {
			return
		}
		agentIdle[deployment.Name] = of.agentIdle
	}
	for name, of := range d.deliveries {
		if agentIdle[name] > 0 {
			continue
		}
		if of.ours(d.Member) || d.isFromLost(name, of) {
			return
		}
	}
	if len(agentIdle) > 0 {
		d.AgentIdle(agentIdle)
	}
	d.Idle(true)
}
