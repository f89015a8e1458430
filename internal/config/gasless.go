package config

// gaslessFile configures whether the service sends payers' authorizations, and how many.
type gaslessFile struct {
	Enabled     scalar  `yaml:"enabled"`
	PerMerchant *scalar `yaml:"perMerchant"`
	PerPayer    *scalar `yaml:"perPayer"`
	PerDay      *scalar `yaml:"perDay"`
}

// Gasless is how many authorizations of payers are accepted on a chain in any 24 hours.
type Gasless struct {
	PerMerchant int64 // for the invoices of one merchant
	PerPayer    int64 // of one payer
	PerDay      int64 // all of them
}

// MaxAuthorizations bounds each of these limits.
const MaxAuthorizations = 1_000_000

// DefaultGasless are the default limits.
func DefaultGasless() Gasless { return Gasless{PerMerchant: 1000, PerPayer: 20, PerDay: 5000} }

// gasless reads the limits of a chain; nil if gasless is off.
func (r *resolver) gasless(path string, f *gaslessFile) *Gasless {
	limits := DefaultGasless()
	for _, setting := range []struct {
		name string
		text **scalar
		to   *int64
	}{
		{"perMerchant", &f.PerMerchant, &limits.PerMerchant}, {"perPayer", &f.PerPayer, &limits.PerPayer}, {"perDay", &f.PerDay, &limits.PerDay},
	} {
		*setting.to = int64(r.count(path+"."+setting.name, setting.text, uint64(*setting.to), 1, MaxAuthorizations))
	}
	if r.isOn(path+".enabled", &f.Enabled, "off") {
		return &limits
	}
	return nil
}
