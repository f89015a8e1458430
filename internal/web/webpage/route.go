package webpage

import (
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/access"
)

// Route is a route of the service, with every fact that the service needs to serve it.
type Route struct {
	// Pattern is the method and path, as http.ServeMux takes it.
	Pattern string
	Handler http.Handler
	// Door is the entrance at which the route is served. Each door has separate limits for requests in
	// flight, their bodies and their database connections.
	Door Door
	// Credential is what a request must present. It decides which rate applies: the rate of the owner of
	// the key or session, or the rate of the client address.
	Credential Credential
	// Scope is what the key or the person's key must have. It is empty if a route needs no scope.
	Scope access.Scope
	// OwnKey is set if a key without the scope may use the route for itself: its id is in the path.
	OwnKey bool
	// Parameters are the names of the query's parameters. The API refuses requests with others.
	Parameters []string
	// Long reports whether a request may take longer than others. Such requests do not count as requests
	// in flight; the handler bounds them. It is nil if no request may.
	Long func(*http.Request) bool
	// Standby is set for lists and sums that a standby of the database may serve.
	//
	// A single object costs the primary as much as reading the position that the standby must have. Events
	// and audit entries are followed by cursor: a standby may have an entry that a failover loses. The
	// other routes are about access, or decide which action follows.
	Standby bool
	// Idempotent is set if requests may have an Idempotency-Key.
	Idempotent bool
	// CallsNodes is set if requests may call the nodes of chains. On another route, a call to a node fails
	// with chain.ErrNoRoute.
	CallsNodes bool
	// MaxBody is how many bytes a body may have; 0 is api.MaxBody. If a body is larger, up to MaxDrained
	// bytes are read and dropped, because a browser shows the answer only after it has sent the request.
	MaxBody, MaxDrained int64
	// Isolated is set if an isolated copy of the service takes the request although its method is unsafe. A
	// person needs it to sign in and look at the copy.
	Isolated bool
	// Monitoring is set if monitoring makes the request every few seconds. It is logged at debug level and
	// has no trace.
	Monitoring bool
}

// RouteOption sets a fact of a route.
type RouteOption func(*Route)

// With returns the route with more facts.
func (r Route) With(options ...RouteOption) Route {
	for _, set := range options {
		set(&r)
	}
	return r
}

// Public is for routes of payers and their programs, which need no key.
func Public(r *Route) { r.Door, r.Credential = PublicDoor, NoCredential }

// Signed is for the signed notices of transfer providers.
func Signed(r *Route) { r.Door, r.Credential = PublicDoor, SignatureCredential }

// Open is for routes at the API's door that need no credential.
func Open(r *Route) { r.Door, r.Credential = APIDoor, NoCredential }

// OwnKey sets Route.OwnKey.
func OwnKey(r *Route) { r.OwnKey = true }

// Takes returns an option with the names of parameters, which spaces separate.
func Takes(parameters string) RouteOption {
	return func(r *Route) { r.Parameters = strings.Fields(parameters) }
}

// Long is for routes with only long requests.
func Long(r *Route) { r.Long = func(*http.Request) bool { return true } }

// LongIf returns an option for routes with some long requests.
func LongIf(isLong func(*http.Request) bool) RouteOption {
	return func(r *Route) { r.Long = isLong }
}

// Standby sets Route.Standby.
func Standby(r *Route) { r.Standby = true }

// Idempotent sets Route.Idempotent.
func Idempotent(r *Route) { r.Idempotent = true }

// CallsNodes sets Route.CallsNodes.
func CallsNodes(r *Route) { r.CallsNodes = true }

// BodyUpTo returns an option that sets Route.MaxBody and MaxDrained.
func BodyUpTo(limit, drained int64) RouteOption {
	return func(r *Route) { r.MaxBody, r.MaxDrained = limit, drained }
}

// Isolated sets Route.Isolated.
func Isolated(r *Route) { r.Isolated = true }

// Monitoring sets Route.Monitoring.
func Monitoring(r *Route) { r.Monitoring = true }

// Door is an entrance of the service. Each route belongs to one door.
type Door string

// Doors.
const (
	PublicDoor   Door = "public"   // payers and transfer providers
	APIDoor      Door = "api"      // merchants' programs and the dashboard
	OperatorDoor Door = "operator" // health checks, metrics and diagnosis
)

// Doors are all doors.
var Doors = []Door{PublicDoor, APIDoor, OperatorDoor}

// Credential is what a request must present.
type Credential string

// Credentials.
const (
	NoCredential Credential = "none"
	// KeyCredential is an access key with the route's scope.
	KeyCredential Credential = "key"
	// OperatorCredential is an access key of the operator, of any scope. It is not required at a private listener.
	OperatorCredential Credential = "operator"
	// OptionalCredential is an access key of the operator that is not required. At a listener that is not
	// private, an answer without it has no details.
	OptionalCredential Credential = "optional"
	// SessionCredential is the session of a person at the dashboard. The person's key must have the route's
	// scope, if any.
	SessionCredential Credential = "session"
	// OperatorSession is the session of an operator, with the same rule about the scope.
	OperatorSession Credential = "operator session"
	// SignatureCredential is the signature of a transfer provider, which the handler verifies. The provider
	// may use any host name.
	SignatureCredential Credential = "signature"
)
