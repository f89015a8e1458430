package dashboard

import (
	"errors"
	"io"
	"net/http"

	"github.com/quittance/quittance/internal/access"
)

// Sizes of the form with a logo.
const (
	// LogoFormBytes is the size of a form with the largest logo. The rest of the form takes less than
	// 16 KiB.
	LogoFormBytes = access.MaxLogoBytes + 16<<10
	// MaxLogoForm is the size up to which a form that is too large is read and dropped. A browser shows
	// the answer only after it has sent the request.
	MaxLogoForm = 16 << 20
)

// logo answers with the merchant's logo.
func (d *Dashboard) logo(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	return d.service.pass(w, r, logoOf(v), nil, http.Header{"Accept": {"image/png"}})
}

// logoOf returns the path of the merchant's logo in the interface.
func logoOf(v *visit) string { return id("/api/merchants", v.merchant) + "/logo" }

// setLogo sets the merchant's logo to the file of a form.
func (d *Dashboard) setLogo(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	image, err := readFile(w, r, "logo", access.MaxLogoBytes)
	if errors.Is(err, errFileTooLarge) {
		return d.showSettings(w, r, http.StatusRequestEntityTooLarge, v.text.T("settings.logo.large", map[string]any{"KB": access.MaxLogoBytes >> 10}), nil)
	}
	if err != nil {
		return err
	}
	return d.settingsChanged(w, r, d.service.call(r.Context(), http.MethodPut, logoOf(v), nil, "", image, nil), nil)
}

// removeLogo removes the merchant's logo.
func (d *Dashboard) removeLogo(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	return d.settingsChanged(w, r, d.service.send(r.Context(), http.MethodDelete, logoOf(v), nil, nil), nil)
}

// errFileTooLarge is the error of a form with a file that is too large.
var errFileTooLarge = errors.New("the file is too large")

// readFile returns the file of a form's field, of at most limit bytes, and reads the form to its
// end. Errors are errForm and errFileTooLarge.
func readFile(w http.ResponseWriter, r *http.Request, field string, limit int64) ([]byte, error) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxLogoForm)
	form, err := r.MultipartReader()
	if err != nil {
		return nil, errForm
	}
	var file []byte
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && part.FormName() == field {
			file, err = io.ReadAll(io.LimitReader(part, limit+1))
		}
		if err == nil {
			_, err = io.Copy(io.Discard, part)
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, errFileTooLarge
		}
		if err != nil {
			return nil, errForm
		}
	}
	if int64(len(file)) > limit {
		return nil, errFileTooLarge
	}
	return file, nil
}
