package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// memberAPI is the API server of one simulated member, without a socket, as far as an agent needs
// it. It keeps the Secrets and ConfigMaps of the agent's namespace, and the Pod of a running Job.
// Nodes, other Pods and namespaces are the same on all members and never change.
type memberAPI struct {
	uid string

	mu       sync.Mutex
	version  int
	objects  map[string]string // JSON by resource/name
	watchers map[*watcher]bool
}

func newMemberAPI(uid string) *memberAPI {
	return &memberAPI{uid: uid, version: 1, objects: map[string]string{}, watchers: map[*watcher]bool{}}
}

// put stores a Secret or ConfigMap and sends an event to the watches.
func (m *memberAPI) put(resource string, object runtime.Object) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	metadata := object.(metav1.Object)
	key, event := resource+"/"+metadata.GetName(), "MODIFIED"
	if m.objects[key] == "" {
		event = "ADDED"
	}
	metadata.SetUID(types.UID(m.uid + "-" + metadata.GetName()))
	metadata.SetCreationTimestamp(metav1.Unix(begun.Unix(), 0))
	metadata.SetResourceVersion(strconv.Itoa(m.version))
	m.objects[key] = string(encode(object))
	m.notify(event, resource, metadata.GetName(), m.objects[key])
	return m.objects[key]
}

func (m *memberAPI) remove(resource, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.objects[resource+"/"+name]
	if object == "" {
		return false
	}
	delete(m.objects, resource+"/"+name)
	m.version++
	m.notify("DELETED", resource, name, object)
	return true
}

// notify sends an event. The caller holds the lock.
func (m *memberAPI) notify(event, resource, name, object string) {
	for w := range m.watchers {
		if w.resource == resource && (w.name == "" || w.name == name) {
			w.send(fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", event, object))
		}
	}
}

// RoundTrip answers a request as an API server does.
func (m *memberAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case request.URL.Path == "/version":
		return reply(request, http.StatusOK, []byte(`{"gitVersion":"v1.36.3"}`)), nil
	case request.URL.Path == "/readyz":
		return reply(request, http.StatusOK, []byte("ok")), nil
	case len(parts) < 3 || parts[0] != "api":
		return refuse(request, http.StatusNotFound, metav1.StatusReasonNotFound), nil
	}
	parts = parts[2:]
	if parts[0] == "namespaces" && len(parts) > 2 { // namespaces/NAMESPACE/RESOURCE[/NAME]
		parts = parts[2:]
	}
	resource, name := parts[0], ""
	if len(parts) > 1 {
		name = parts[1]
	}
	switch {
	case request.Method == http.MethodPost, request.Method == http.MethodPut:
		return m.write(request, resource), nil
	case request.Method == http.MethodDelete:
		if !m.remove(resource, name) {
			return refuse(request, http.StatusNotFound, metav1.StatusReasonNotFound), nil
		}
		return reply(request, http.StatusOK,
			encode(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})), nil
	case request.Method != http.MethodGet:
		return refuse(request, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed), nil
	case request.URL.Query().Get("watch") != "":
		return m.watch(request, resource), nil
	case name != "":
		return m.get(request, resource, name), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := m.list(resource, selected(request))
	return reply(request, http.StatusOK, []byte(fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		kinds[resource]+"List", m.version, strings.Join(objects, ",")))), nil
}

// write creates or updates a Secret or ConfigMap.
func (m *memberAPI) write(request *http.Request, resource string) *http.Response {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return refuse(request, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return refuse(request, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	m.mu.Lock()
	_, found := m.objects[resource+"/"+object.(metav1.Object).GetName()]
	m.mu.Unlock()
	switch {
	case found && request.Method == http.MethodPost:
		return refuse(request, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case !found && request.Method == http.MethodPut:
		return refuse(request, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	return reply(request, http.StatusOK, []byte(m.put(resource, object)))
}

func (m *memberAPI) get(request *http.Request, resource, name string) *http.Response {
	if resource == "namespaces" {
		return reply(request, http.StatusOK, encode(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(m.uid)}}))
	}
	m.mu.Lock()
	objects := m.list(resource, name)
	m.mu.Unlock()
	if len(objects) == 0 {
		return refuse(request, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	return reply(request, http.StatusOK, []byte(objects[0]))
}

// list returns the objects of a resource, or the one of a name, as JSON. It never returns Secrets
// of releases, the only ones selected by labels. The caller holds the lock.
func (m *memberAPI) list(resource, name string) []string {
	if name == "" {
		if job := m.objects["pods/"+jobPod]; resource == "pods" && job != "" {
			return append(slices.Clone(unchanging[resource]), job)
		}
		return unchanging[resource]
	}
	if object := m.objects[resource+"/"+name]; object != "" {
		return []string{object}
	}
	return nil
}

// watch begins a watch, with the present objects on request.
func (m *memberAPI) watch(request *http.Request, resource string) *http.Response {
	w := &watcher{member: m, resource: resource, name: selected(request), frames: make(chan []byte, 8), closed: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := m.list(resource, w.name)
	m.watchers[w] = true
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		for _, object := range objects {
			w.unread = append(w.unread, `{"type":"ADDED","object":`+object+"}\n"...)
		}
		w.unread = fmt.Appendf(w.unread,
			`{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}}`+"\n",
			kinds[resource], m.version, metav1.InitialEventsAnnotationKey)
	}
	response := reply(request, http.StatusOK, nil)
	response.Header.Set("Content-Type", "application/json;stream=watch")
	response.Body, response.ContentLength = w, -1
	return response
}

// watcher is the body of a watch.
type watcher struct {
	member         *memberAPI
	resource, name string
	frames         chan []byte
	unread         []byte
	once           sync.Once
	closed         chan struct{}
}

// send passes on an event. It ends a watch without a reading client, as a real server does.
func (w *watcher) send(frame []byte) {
	select {
	case w.frames <- frame:
	default:
		go func() { _ = w.Close() }() // it returns no error
	}
}

func (w *watcher) Read(into []byte) (int, error) {
	if len(w.unread) == 0 {
		select {
		case w.unread = <-w.frames:
		case <-w.closed:
			return 0, io.EOF
		}
	}
	n := copy(into, w.unread)
	if w.unread = w.unread[n:]; len(w.unread) == 0 {
		w.unread = nil
	}
	return n, nil
}

func (w *watcher) Close() error {
	w.once.Do(func() {
		close(w.closed)
		w.member.mu.Lock()
		defer w.member.mu.Unlock()
		delete(w.member.watchers, w)
	})
	return nil
}

// selected returns the name in a field selector, if there is one.
func selected(request *http.Request) string {
	name, _ := strings.CutPrefix(request.URL.Query().Get("fieldSelector"), "metadata.name=")
	if strings.ContainsAny(name, "=!,") {
		return "" // another selector, matched by all objects
	}
	return name
}

var kinds = map[string]string{"secrets": "Secret", "configmaps": "ConfigMap", "nodes": "Node", "pods": "Pod", "namespaces": "Namespace"}

// encode returns the JSON of an object with its kind.
func encode(object runtime.Object) []byte {
	known, _, err := clientgoscheme.Scheme.ObjectKinds(object)
	if err == nil {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: known[0].Kind})
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // no object of Kubernetes fails
	}
	return text
}

func reply(request *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))),
		ContentLength: int64(len(body)),
	}
}

func refuse(request *http.Request, code int32, reason metav1.StatusReason) *http.Response {
	return reply(request, int(code), encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: string(reason),
	}))
}
