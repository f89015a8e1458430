package apiconv

import (
	"slices"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// Approval returns the JSON of a request for approval.
func Approval(a access.Approval) apitypes.Approval {
	return apitypes.Approval{
		ID: a.ID, MerchantID: a.MerchantID, Kind: apitypes.ApprovalKind(a.Kind), Subject: a.Subject, State: apitypes.ApprovalState(a.State), People: a.Needed,
		RequestedBy: a.RequestedBy, RequestedAt: a.RequestedAt.Unix(), ExpiresAt: a.ExpiresAt.Unix(), UsedAt: optionalTime(a.UsedAt),
	}
}

// ApprovalResponse returns the JSON of a request for approval with its votes, and the people who may approve.
func ApprovalResponse(a access.Approval, votes []access.ApprovalVote, people []access.Record) apitypes.ApprovalResponse {
	r := apitypes.ApprovalResponse{Approval: Approval(a), Votes: []apitypes.ApprovalVote{}, Approvers: []string{}}
	for _, p := range people {
		r.Approvers = append(r.Approvers, p.Name)
	}
	for _, v := range votes {
		counts := slices.ContainsFunc(people, func(p access.Record) bool { return p.PersonID == v.PersonID })
		r.Votes = append(r.Votes, apitypes.ApprovalVote{Name: v.Name, Approves: v.Approves, Counts: counts, At: v.At.Unix()})
	}
	return r
}
