package access_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// office is the URL of the dashboard.
const office = "https://office.example"

// device is a device with one passkey.
type device struct {
	key          *ecdsa.PrivateKey
	id           []byte
	user         string
	count        uint32
	host, origin string
	flags        byte // user present and verified, and a copy of the key is kept elsewhere
}

func newDevice(t *testing.T) *device {
	t.Helper()
	key := expect.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return &device{key: key, id: []byte(rand.Text()[:16]), host: "office.example", origin: office, flags: 0x1d}
}

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// authenticatorData returns the signed data about the device.
func (d *device) authenticatorData(flags byte) []byte {
	host := sha256.Sum256([]byte(d.host))
	return binary.BigEndian.AppendUint32(append(host[:], flags), d.count)
}

// clientData returns the browser's data about a use.
func (d *device) clientData(use, challenge string) []byte {
	return fmt.Appendf(nil, `{"type":"webauthn.%s","challenge":%q,"origin":%q,"crossOrigin":false}`, use, challenge, d.origin)
}

// challengeOf returns the challenge of the options of a use.
func challengeOf(t *testing.T, options any) string {
	t.Helper()
	text := expect.Must(json.Marshal(options))
	var in struct {
		PublicKey struct {
			Challenge string `json:"challenge"`
		} `json:"publicKey"`
	}
	if err := json.Unmarshal(text, &in); err != nil || in.PublicKey.Challenge == "" {
		t.Fatalf("the options are %s, %v", text, err)
	}
	return in.PublicKey.Challenge
}

// answer returns the JSON of a credential, as browsers write it.
func (d *device) answer(response map[string]string) []byte {
	text, _ := json.Marshal(map[string]any{"id": b64(d.id), "rawId": b64(d.id), "type": "public-key", "response": response, "clientExtensionResults": struct{}{}})
	return text
}

// create answers to the creation of a passkey of a person, without attestation.
func (d *device) create(t *testing.T, options any, person string) []byte {
	t.Helper()
	d.user = person
	point, err := d.key.PublicKey.Bytes()
	expect.OK(t, err)
	data := append(d.authenticatorData(d.flags|0x40), make([]byte, 16)...) // with a key, of a device without a kind
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(d.id))), d.id...)
	data = slices.Concat(data, []byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20}, point[1:33], []byte{0x22, 0x58, 0x20}, point[33:])
	object := slices.Concat([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"), []byte{byte(len(data))}, data)
	return d.answer(map[string]string{"clientDataJSON": b64(d.clientData("create", challengeOf(t, options))), "attestationObject": b64(object)})
}

// use answers to a use of the passkey.
func (d *device) use(t *testing.T, options any) []byte {
	t.Helper()
	d.count++
	data, client := d.authenticatorData(d.flags), d.clientData("get", challengeOf(t, options))
	hash := sha256.Sum256(client)
	signed := sha256.Sum256(append(slices.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, signed[:])
	expect.OK(t, err)
	return d.answer(map[string]string{"authenticatorData": b64(data), "clientDataJSON": b64(client), "signature": b64(signature), "userHandle": b64([]byte(d.user))})
}

// begin begins a use.
func (w *sessionWorld) begin(purpose access.Purpose, s access.Session) (options any, token string) {
	w.t.Helper()
	options, token, err := w.BeginPasskey(w.t.Context(), purpose, s)
	expect.OK(w.t, err)
	return options, token
}

// adds gives the person of a session a passkey.
func (w *sessionWorld) adds(s access.Session, d *device) {
	w.t.Helper()
	options, token := w.begin(access.ToAdd, s)
	expect.OK(w.t, w.AddPasskey(w.t.Context(), s, token, "phone", d.create(w.t, options, s.PersonID)))
}

// TestPasskey adds a passkey, signs in and confirms with it, and refuses every other answer.
func TestPasskey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		owner := w.person("acme", access.Admin)
		_, token := w.invite(owner, "ada@example.com", access.Admin)
		if w.find(w.join(token)).Confirmed(w.at) {
			t.Error("an invitation, which may have been passed on, confirms its reader")
		}
		_, token = w.invite(w.person("globex", access.Admin), "ada@example.com", access.Admin)
		w.join(token)
		first := w.mailed("ada@example.com")
		s, phone := w.find(first), newDevice(t)
		if !s.Confirmed(w.at) {
			t.Error("a person without a passkey is not confirmed by the mail")
		}
		other := w.mailed("ada@example.com") // somebody who reads the mail
		thief, tablet := w.find(other), newDevice(t)
		added, late := w.begin(access.ToAdd, thief)
		w.adds(s, phone)
		if w.find(other).Confirmed(w.at) || !w.find(first).Confirmed(w.at) {
			t.Error("after the first passkey, the other session is still confirmed by the mail, or the own one is not")
		}
		if err := w.AddPasskey(ctx, thief, late, "tablet", tablet.create(t, added, s.PersonID)); !errors.Is(err, access.ErrPasskey) {
			t.Errorf("a passkey of a session that is no longer confirmed: %v", err)
		}

		options, token := w.begin(access.ToSignIn, access.Session{})
		answer := phone.use(t, options)
		signedIn, err := w.SignInByPasskey(ctx, token, answer, access.Browser{})
		if err != nil || w.find(signedIn).PersonID != s.PersonID || !w.find(signedIn).Confirmed(w.at) || w.find(signedIn).BeganBy != access.ByPasskey {
			t.Fatalf("sign-in by the passkey: %v", err)
		}
		refused := func(why string, change func(*device), alter func(token string, answer []byte) (string, []byte)) {
			t.Helper()
			d := *phone
			change(&d)
			options, token := w.begin(access.ToSignIn, access.Session{})
			answer := d.use(t, options)
			if alter != nil {
				token, answer = alter(token, answer)
			}
			if session, err := w.SignInByPasskey(ctx, token, answer, access.Browser{}); !errors.Is(err, access.ErrPasskey) || session != "" {
				t.Errorf("%s: %q, %v", why, session, err)
			}
		}
		refused("another host", func(d *device) { d.host = "evil.example" }, nil)
		refused("another origin", func(d *device) { d.origin = "https://evil.example" }, nil)
		refused("another port", func(d *device) { d.origin = office + ":8443" }, nil)
		refused("plain HTTP", func(d *device) { d.origin = "http://office.example" }, nil)
		refused("without the person", func(d *device) { d.flags = 0x19 }, nil)
		refused("another key", func(d *device) { d.key = newDevice(t).key }, nil)
		refused("another person", func(d *device) { d.user = "per_x" }, nil)
		refused("a copy of the device", func(d *device) { d.count = 0 }, nil)
		refused("repeated", func(*device) {}, func(string, []byte) (string, []byte) { return token, answer })
		refused("for another challenge", func(*device) {}, func(token string, _ []byte) (string, []byte) { return token, answer })
		refused("no answer", func(*device) {}, func(token string, _ []byte) (string, []byte) { return token, []byte("{}") })
		refused("late", func(*device) {}, func(token string, answer []byte) (string, []byte) {
			w.at = w.at.Add(access.CeremonyLifetime)
			return token, answer
		})
		phone.count += 20

		mailed := w.mailed("ada@example.com")
		if w.find(mailed).Confirmed(w.at) {
			t.Error("a mail confirms a person with a passkey")
		}
		options, token = w.begin(access.ToSignIn, access.Session{})
		proven, err := w.SignInByPasskey(ctx, token, phone.use(t, options), access.Browser{})
		expect.OK(t, err)
		w.joinsBy(mailed, proven)
		options, token = w.begin(access.ToConfirm, w.find(mailed))
		answer = phone.use(t, options)
		if err := w.ConfirmByPasskey(ctx, w.find(first), token, answer); !errors.Is(err, access.ErrPasskey) {
			t.Errorf("confirmed in another session: %v", err)
		}
		options, token = w.begin(access.ToConfirm, w.find(mailed))
		if err := w.ConfirmByPasskey(ctx, w.find(mailed), token, phone.use(t, options)); err != nil || !w.find(mailed).Confirmed(w.at) {
			t.Errorf("not confirmed: %v", err)
		}

		var copies sync.WaitGroup
		var accepted atomic.Int32
		for range 8 {
			options, token := w.begin(access.ToSignIn, access.Session{})
			twin := *phone
			answer := twin.use(t, options)
			copies.Go(func() {
				if _, err := w.SignInByPasskey(ctx, token, answer, access.Browser{}); err == nil {
					accepted.Add(1)
				} else if !errors.Is(err, access.ErrPasskey) {
					t.Errorf("a copy of the device: %v", err)
				}
			})
		}
		copies.Wait()
		if accepted.Load() != 1 {
			t.Errorf("%d copies of the device with the same counter are accepted", accepted.Load())
		}

		all, err := w.Passkeys(ctx, s)
		if err != nil || len(all) != 1 || all[0].Name != "phone" || all[0].UsedAt.IsZero() {
			t.Fatalf("the passkeys are %+v, %v", all, err)
		}
		moved := slices.Clone(all)
		moved[0].Credential.Attestation.AuthenticatorData = (&device{host: "former.example"}).authenticatorData(0)
		if !w.CanUse(all) || w.CanUse(moved) {
			t.Error("a passkey of this host cannot be used, or one of another host can")
		}
		if k, err := w.RemovePasskey(ctx, w.find(mailed), all[0].ID); err != nil || k.Name != "phone" {
			t.Fatal(err)
		}
		w.wantSignedOut(signedIn, "after the passkey was removed")
		refused("removed", func(*device) {}, nil)
		for range access.MaxPasskeys {
			w.adds(w.find(mailed), newDevice(t))
		}
		if _, _, err := w.BeginPasskey(ctx, access.ToAdd, w.find(mailed)); !errors.Is(err, access.ErrTooManyPasskeys) {
			t.Errorf("one more passkey: %v", err)
		}
		for _, merchant := range []string{"acme", "globex"} {
			for action, want := range map[access.Action]int{access.ActionPasskeyAdd: 1 + access.MaxPasskeys, access.ActionPasskeyRemove: 1} {
				entries, err := access.NewReader(store).AuditEntries(ctx, access.AuditFilter{MerchantID: merchant, Action: action, Limit: 99})
				if err != nil || len(entries) != want {
					t.Errorf("%s has %d entries of %s, %v; want %d", merchant, len(entries), action, err, want)
				}
			}
		}
		w.fillCeremonies(access.MaxCeremonies)
		for range 2 { // strangers keep nobody from signing in or confirming
			w.begin(access.ToSignIn, access.Session{})
			w.begin(access.ToConfirm, w.find(mailed))
		}
		if n := w.ceremonies(); n != access.MaxCeremonies+1 {
			t.Errorf("%d uses have begun", n)
		}
		w.at = w.at.Add(access.CeremonyLifetime)
		w.begin(access.ToSignIn, access.Session{})
		if n := w.ceremonies(); n != 1 {
			t.Errorf("after their lifetime there are %d uses", n)
		}
		w.invitedAgain(owner, s.PersonID)
	})
}

// joinsBy accepts the invitation of a further merchant in sessions of Ada, who has a passkey. Her mail alone does not suffice,
// since it may have another reader by now.
func (w *sessionWorld) joinsBy(mailed, signedIn string) {
	w.t.Helper()
	ctx := w.t.Context()
	_, token := w.invite(w.person("initech", access.Admin), "ada@example.com", access.Admin)
	_, member := w.signIn(w.person("initech", access.Admin))
	for name, s := range map[string]access.Session{"no session": {}, "a session by mail": w.find(mailed), "another's session": member} {
		if _, session, err := w.Accept(ctx, s, token, access.Browser{}); !errors.Is(err, access.ErrUnproven) || session != "" {
			w.t.Errorf("accepted in %s: %q, %v", name, session, err)
		}
	}
	if p, _, err := w.Accept(ctx, w.find(signedIn), token, access.Browser{}); err != nil || p.MerchantID != "initech" {
		w.t.Errorf("accepted in a session by passkey: %+v, %v", p, err)
	}
	expect.Success(w.t)(w.keys.Revoke(ctx, access.Open(), w.membership(signedIn, "initech")))
}

// membership returns the key of a membership of a session's person.
func (w *sessionWorld) membership(session, merchant string) string {
	w.t.Helper()
	all, err := w.Memberships(w.t.Context(), w.find(session))
	i := slices.IndexFunc(all, func(m access.Membership) bool { return m.MerchantID == merchant })
	if err != nil || i < 0 {
		w.t.Fatalf("no membership of %s among %+v, %v", merchant, all, err)
	}
	return all[i].KeyID
}

// invitedAgain ends the memberships of Ada, who has passkeys, and invites her again.
func (w *sessionWorld) invitedAgain(owner person, personID string) {
	w.t.Helper()
	former := w.mailed("ada@example.com")
	keys, err := access.NewReader(w.store).Keys(w.t.Context(), access.KeyFilter{Limit: 99})
	expect.OK(w.t, err)
	for _, key := range keys {
		if key.PersonID != personID {
			continue
		}
		expect.Success(w.t)(w.keys.Revoke(w.t.Context(), access.Open(), key.ID))
	}
	_, token := w.invite(owner, "ada@example.com", access.Admin)
	again := w.find(w.join(token))
	if all, err := w.Passkeys(w.t.Context(), again); err != nil || len(all) > 0 || again.PersonID != personID {
		w.t.Errorf("a person who left and was invited again has %d passkeys, %v", len(all), err)
	}
	w.wantSignedOut(former, "after the person left and was invited again")
	if !w.find(w.mailed("ada@example.com")).Confirmed(w.at) {
		w.t.Error("a mail does not confirm a person who was invited again")
	}
}

// TestPasskeyDuringSignIn adds a passkey while the person signs in by mail, which then confirms nothing.
func TestPasskeyDuringSignIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		_, token := w.invite(w.person("acme", access.Admin), "ada@example.com", access.Admin)
		personID := w.find(w.join(token)).PersonID
		link, err := w.MailLink(ctx, "ada@example.com")
		expect.OK(t, err)
		var session string
		opened := make(chan error, 1)
		if err := store.Update(ctx, func(tx *db.Tx) error {
			if _, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM people WHERE id = $1"+tx.ForUpdate(), personID); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "INSERT INTO passkeys (id, person_id, name, credential, created_at) VALUES ('a', $1, 'phone', '{}', 0)", personID); err != nil {
				return err
			}
			go func() {
				var err error
				session, err = w.OpenLink(ctx, link.Token, access.Browser{})
				opened <- err
			}()
			for waiting := 0; tx.ForUpdate() != "" && waiting == 0 && len(opened) == 0; { // PostgreSQL has several transactions at a time
				var err error
				waiting, err = db.QueryRow(ctx, store, db.ScanCount, "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.01) WHERE datname = current_database() AND wait_event_type = 'Lock'")
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; err != nil || w.find(session).Confirmed(w.at) {
			t.Errorf("a sign-in by mail while a passkey is added is confirmed: %v", err)
		}
	})
}

// ceremonies returns how many uses of passkeys have begun.
func (w *sessionWorld) ceremonies() int {
	w.t.Helper()
	n, err := db.QueryRow(w.t.Context(), w.store, db.ScanCount, "SELECT count(*) FROM passkey_ceremonies")
	expect.OK(w.t, err)
	return n
}

// fillCeremonies begins sign-ins until there are n.
func (w *sessionWorld) fillCeremonies(n int) {
	w.t.Helper()
	expect.OK(w.t, w.store.Update(w.t.Context(), func(tx *db.Tx) error {
		begun, err := db.QueryRow(w.t.Context(), tx, db.ScanCount, "SELECT count(*) FROM passkey_ceremonies WHERE session_id IS NULL AND expires_at > $1", w.at.Unix())
		if err != nil {
			return err
		}
		_, err = tx.Exec(w.t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2)
			INSERT INTO passkey_ceremonies (token_hash, purpose, data, expires_at)
			SELECT $1 || CAST(1000000 + i AS TEXT), 'sign-in', '{}', CAST($3 AS BIGINT) FROM n`, strings.Repeat("0", 57), n-begun, w.at.Unix()+1)
		return err
	}))
}

// TestPasskeyGuess limits guesses of tokens as other guesses, and looks up no other text.
func TestPasskeyGuess(t *testing.T) {
	t.Parallel()
	party, err := access.NewRelyingParty(office)
	expect.OK(t, err)
	now := func() time.Time { return time.Unix(1_000_000, 0) }
	store, admitted := dbtest.Open(t, dbtest.Migrated(t)), 0
	m := access.NewSessions(access.SessionConfig{
		Store: store, Passkeys: party, Now: now, Rand: rand.Reader,
		Admit: func(context.Context, [access.HashSize]byte) (func(bool), error) {
			return func(wrong bool) {
				if wrong {
					admitted++
				}
			}, nil
		},
		Authenticator: access.NewAuthenticator(access.AuthenticatorConfig{Store: access.NewTables(store), Mode: access.Live, Now: now, Logger: slog.New(slog.DiscardHandler)}),
	})
	for token, want := range map[string]int{"": 0, "qs_" + rand.Text(): 0, access.PrefixCeremony + strings.Repeat("a", 62): 0, access.PrefixCeremony + rand.Text(): 1} {
		admitted = 0
		if _, err := m.SignInByPasskey(t.Context(), token, []byte("{}"), access.Browser{}); !errors.Is(err, access.ErrPasskey) || admitted != want {
			t.Errorf("%q: %v, %d guesses", token, err, admitted)
		}
	}
}

// TestRelyingParty accepts passkeys only at a host name.
func TestRelyingParty(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]bool{office: true, "http://localhost:8080": true, "": false, "http://127.0.0.1:8080": false, "https://[::1]": false} {
		if party, err := access.NewRelyingParty(base); err != nil || (party != nil) != want {
			t.Errorf("%q: %v, %v", base, party, err)
		}
	}
}
