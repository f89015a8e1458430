package apitypes

import "encoding/json"

// Envelope has the members of an event except its data.
type Envelope struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"`
	CreatedAt int64     `json:"createdAt"` // Unix seconds
}

// ID returns the event's id, or "" if the event cannot be decoded.
func (r EventRecord) ID() string { return r.Envelope().ID }

// Envelope returns the event without its data, or a zero Envelope if the event cannot be decoded. webhook.ParseEvent
// reads the data.
func (r EventRecord) Envelope() (e Envelope) {
	if err := json.Unmarshal(r.Event, &e); err != nil {
		return Envelope{}
	}
	return e
}
