package access

import "context"

type originKey struct{}

// WithOrigin returns a context for changes of the origin. Its actor may be empty if the context carries a principal.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginFrom returns the origin that ctx carries. Without an actor, that is the principal
// of ctx, or the service itself.
func OriginFrom(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	if o.Actor != "" {
		return o
	}
	switch p := FromContext(ctx); {
	case p.KeyID != "":
		o.Actor = p.KeyID
	case p.Scopes != 0:
		o.Actor = ActorOpen
	default:
		o.Actor = ActorService
	}
	return o
}
