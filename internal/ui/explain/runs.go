package explain

// runCauses explains why a staged update run does not continue.
var runCauses = []cause{
	{
		kinds: ofRuns, reasons: []string{"UpdateRunInitializedFailed"},
		means: "The hub cannot divide the members into stages. If only the placement or the strategy is missing, the run " +
			"continues once that object exists. Otherwise the run has ended.",
		remedy: "Correct the problem in the message, and create another run.",
		onHub:  []string{"kubectl get clusterstagedupdatestrategies,stagedupdatestrategies -A"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunFailed"},
		means:  "The run has ended before all members were updated. Members keep their version.",
		remedy: "Correct the problem in the message, and create another run.",
		onHub:  []string{"muster get runs"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunStuck"},
		means:  "The run waits for members that cannot be updated, or do not become available with the new version.",
		remedy: "Repair the members in the message, and the run continues. Or stop the run, and create another one with an earlier version.",
		onHub:  []string{"muster get members"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunWaiting"},
		means:  "The run waits for an approval, for a time to pass, or for another run.",
		remedy: "Read the cause in the message. If the run waits for an approval, approve the stage.",
		onHub:  []string{"muster approve runs OBJECT"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunStopping", "UpdateRunStopped"},
		means:  "A user has set spec.state of the run to Stop. No further member is updated.",
		remedy: "To continue, set spec.state to Run.",
		onHub:  []string{"muster get runs"},
	},
}
