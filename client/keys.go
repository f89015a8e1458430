package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// CreateKey creates a key, and returns it with its secret. The error's code is [apitypes.CodeForbidden] if the client's
// key lacks a scope of the new one, or belongs to another merchant, [apitypes.CodeInvalidField] if a member is invalid,
// and [apitypes.CodeTooManyKeys] if the owner has too many keys.
func (c *Client) CreateKey(ctx context.Context, r apitypes.CreateKeyRequest) (k apitypes.Key, secret string, err error) {
	var answer apitypes.KeySecretResponse
	err = c.send(ctx, request{method: http.MethodPost, url: c.path("api/keys")}, r, &answer)
	return answer.Key, answer.Secret, err
}

// Keys lists keys, newest first: a merchant's keys or, if merchantID is empty, all that the client's key may see. It
// requests pages as needed, and ends after an error.
func (c *Client) Keys(ctx context.Context, merchantID string) iter.Seq2[apitypes.Key, error] {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	return list(ctx, c, c.path("api/keys"), query, 0, func(page apitypes.KeyList) ([]apitypes.Key, string) {
		return page.Keys, page.NextCursor
	})
}

// RotateKey creates a key that replaces another, and returns it with its secret. The old one stays valid for the
// overlap, in whole seconds. The error's code is [apitypes.CodeNotFound] if the id is unknown, and
// [apitypes.CodeKeyNotActive] if the key was revoked, has expired or was rotated.
func (c *Client) RotateKey(ctx context.Context, id string, overlap time.Duration) (k apitypes.Key, secret string, err error) {
	var answer apitypes.KeySecretResponse
	seconds := int64(overlap / time.Second)
	err = c.send(ctx, request{method: http.MethodPost, url: c.path("api/keys", id, "rotate")}, apitypes.RotateKeyRequest{OverlapSeconds: &seconds}, &answer)
	return answer.Key, answer.Secret, err
}

// CreateSignInLink makes a link that signs the holder of a key in at the dashboard once. The key is the client's if
// keyID is empty, and otherwise the one with that id. The link is the URL of a page. The error's code is
// [apitypes.CodeForbidden] if the client's key lacks keys:write or a scope of the other one, [apitypes.CodeNotFound] if
// the id is unknown, and [apitypes.CodeKeyNotActive] if the key was revoked or has expired.
func (c *Client) CreateSignInLink(ctx context.Context, keyID string) (link string, expiresAt time.Time, err error) {
	var answer apitypes.SignInLink
	err = c.send(ctx, request{method: http.MethodPost, url: c.path("api/sign-in-links")}, apitypes.CreateSignInLinkRequest{KeyID: keyID}, &answer)
	if err != nil {
		return "", time.Time{}, err
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(answer.Path, "/"), "?")
	page := *c.path(path)
	page.RawQuery = query
	return page.String(), time.Unix(answer.ExpiresAt, 0).UTC(), nil
}

// RevokeKey revokes a key. The service refuses it within a second. The error's code is
// [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, url: c.path("api/keys", id), repeatable: true}, nil)
}
