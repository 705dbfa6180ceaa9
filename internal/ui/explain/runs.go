package explain

// runCauses are why a staged update run does not go on.
var runCauses = []cause{
	{
		kinds: ofRuns, reasons: []string{"UpdateRunInitializedFailed"},
		means: "The members cannot be divided into stages. If only the placement or the strategy is missing, the run goes on when it is there; " +
			"else it has ended.",
		remedy: "Correct what the message names, and create another run.",
		onHub:  []string{"kubectl get clusterstagedupdatestrategies,stagedupdatestrategies -A"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunFailed"},
		means:  "The run has ended before all members were updated. What members have stays as it is.",
		remedy: "Correct what the message names, and create another run.",
		onHub:  []string{"muster get runs"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunStuck"},
		means:  "The run waits for members that cannot be updated, or on which the new version does not work.",
		remedy: "Mend the members that the message names, and the run goes on; or stop it, and create another with an earlier version.",
		onHub:  []string{"muster get members"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunWaiting"},
		means:  "The run waits for an approval, for a time to pass, or for another run.",
		remedy: "The message says for which. If the run waits for an approval, approve the stage.",
		onHub:  []string{"muster approve runs NAME"},
	},
	{
		kinds: ofRuns, reasons: []string{"UpdateRunStopping", "UpdateRunStopped"},
		means:  "A user has set spec.state of the run to Stop, and no further member is updated.",
		remedy: "Set spec.state to Run, and the run goes on.",
		onHub:  []string{"muster get runs"},
	},
}
