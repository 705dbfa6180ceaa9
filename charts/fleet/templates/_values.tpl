{{/* The values of the chart, as values.schema.json has them. */}}
{{- define "fleet.values" -}}
apiServerURL apiServerCA apiServerFallbacks apiServerFallbackAfter agentTLSMode agentCheckinInterval agentTokenLifetime forceDeleteWaitTime garbageCollectionInterval manageAgent
ignoreClusterRegistrationLabels registration registration.requestLifetime registration.newClusterLifetime registration.maxWaitingPerToken
registration.maxWaitingPerWorkspace registration.maxQueuedPerToken registration.maxNewClustersPerToken registration.displacement audit
audit.maxAge audit.maxEntries removalBrake removalBrake.share healthCheck healthCheck.failureThreshold healthCheck.successThreshold lostMembers lostMembers.taintAfter lostMembers.removeAfter inventory inventory.namespace inventory.alsoInFleetSystem inventory.clusterSet inventory.placementDecisions
facts facts.labels clusterAPI clusterAPI.labels clusterAPI.annotations clusterAPI.classLabel clusterAPI.leaveFirst notifications access access.workspaces access.argocdNamespace access.argocdProject access.fluxNamespace access.inventoryNamespace flowControl flowControl.enabled bootstrap bootstrap.enabled
bootstrap.namespace bootstrap.agentNamespace bootstrap.localAgentDisabled bootstrap.clusterLabels bootstrap.repo bootstrap.secret
bootstrap.branch bootstrap.paths bundleNamespaceMappings bundleNamespaceMappingsToLocal importLoopback placement placement.enabled
placement.authorRights placement.resources placement.extraResources image image.repository image.tag image.imagePullPolicy agentImage
agentImage.repository agentImage.tag agentImage.imagePullPolicy global proxy noProxy leaderElection leaderElection.leaseDuration
leaderElection.renewDeadline leaderElection.retryPeriod gitops gitops.enabled gitops.replicas gitops.webhook gitops.webhook.enabled gitops.allowLoopback gitops.resources controller controller.replicas controller.registrationTokenTTL resources
networkPolicy networkPolicy.enabled networkPolicy.metricsFrom nodeSelector tolerations affinity priorityClassName monitoring
monitoring.podMonitor monitoring.rules monitoring.board dashboard dashboard.enabled dashboard.replicas dashboard.resources dashboard.from dashboard.trustedProxies dashboard.grafanaURL backup backup.enabled backup.schedule backup.recipients backup.keep backup.secretsFrom backup.existingClaim backup.bucket backup.serviceAccountAnnotations backup.size backup.storageClass backup.resources extraEnv extraLabels extraAnnotations debug disableSecurityContext
{{- end }}

{{/* Values of upstream's chart that mean nothing to this one. They are accepted, so that a file of values can be taken along, and the notes name them. */}}
{{- define "fleet.upstreamValues" -}}
agent clusterEnqueueDelay cpuPprof debugLevel gitops.syncPeriod helmops imagescan metrics
migrations propagateDebugSettingsToAgents proxyCACert shards gitjob insecureSkipHostKeyChecks controller.reconciler image.os
agentImage.os
{{- end }}

{{/* The keys in the values that the chart does not know, and the keys that only the upstream chart has: (list .Values KNOWN UPSTREAM). KNOWN and
UPSTREAM are lists of keys. A map below a key is checked if the lists have keys below it. */}}
{{- define "fleet.strange" -}}
{{- $known := concat (index . 1) (index . 2) -}}
{{- $paths := list -}}
{{- range $key, $value := first . -}}
{{- $below := false -}}
{{- range $known }}{{ if hasPrefix (printf "%s." $key) . }}{{ $below = true }}{{ end }}{{ end -}}
{{- if not (kindIs "invalid" $value) }}{{ $paths = append $paths $key }}{{ end -}}
{{- if and $below (kindIs "map" $value) }}{{ range $child, $it := $value }}{{ if not (kindIs "invalid" $it) }}{{ $paths = append $paths (printf "%s.%s" $key $child) }}{{ end }}{{ end }}{{ end -}}
{{- end -}}
{{- $unknown := list }}{{ $ignored := list -}}
{{- range $path := sortAlpha $paths -}}
{{- if has $path (index $ 2) }}{{ $ignored = append $ignored $path }}{{ else if not (has $path (index $ 1)) }}{{ $unknown = append $unknown $path }}{{ end -}}
{{- end -}}
{{- dict "unknown" $unknown "ignored" $ignored | toJson -}}
{{- end }}

{{/* The key of a list with the most pairs of letters in common with another key: (list KEY KEYS). It is empty if no key is similar. */}}
{{- define "fleet.nearest" -}}
{{- $key := first . | lower -}}
{{- $best := 600 }}{{ $nearest := "" -}}
{{- range $candidate := last . -}}
{{- $shared := 0 -}}
{{- range $i := until (max 0 (sub (len $key) 1) | int) }}{{ if contains (substr $i (add $i 2 | int) $key) (lower $candidate) }}{{ $shared = add $shared 1 }}{{ end }}{{ end -}}
{{- $likeness := div (mul 2000 $shared) (add (len $key) (len $candidate)) -}}
{{- if gt (int $likeness) (int $best) }}{{ $best = $likeness }}{{ $nearest = $candidate }}{{ end -}}
{{- end -}}
{{- $nearest -}}
{{- end }}
