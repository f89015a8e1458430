package browsertest

import "github.com/chromedp/cdproto/webauthn"

// AddAuthenticator gives the browser a device for passkeys, which recognizes its person at once.
func (p *Page) AddAuthenticator() {
	p.t.Helper()
	call(p, webauthn.Enable, webauthn.EnableParams{})
	call(p, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
}
