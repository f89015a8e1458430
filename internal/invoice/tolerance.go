package invoice

import (
	"fmt"
	"strings"
)

// Tolerance is how much less than an invoice's amount a merchant accepts: an amount in minor units, or hundredths of a
// percent of the invoice's amount, whichever is more. The zero Tolerance accepts only the full amount.
type Tolerance struct {
	Amount      Amount
	BasisPoints uint16
}

// maxBasisPoints is the largest share that may be tolerated. It limits the number of invoices that a transfer within
// the tolerance may be for.
const maxBasisPoints = 5000

// Of returns the tolerance of an invoice over the amount, at most half of it.
func (t Tolerance) Of(amount Amount) Amount {
	share := amount.share(min(t.BasisPoints, maxBasisPoints))
	if share.Less(t.Amount) {
		share = t.Amount
	}
	if half := amount.share(maxBasisPoints); half.Less(share) {
		return half
	}
	return share
}

// share returns basisPoints ten-thousandths of the amount, rounded down.
func (a Amount) share(basisPoints uint16) Amount {
	const whole = 10_000
	quotient, rest := a.divide(whole)
	// The result does not exceed a, so it fits.
	part, _ := quotient.mulAdd(uint64(basisPoints), rest*uint64(basisPoints)/whole)
	return part
}

// String returns what ParseTolerance reads, or "" for the zero Tolerance.
func (t Tolerance) String() string {
	switch {
	case t.BasisPoints > 0:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%02d", t.BasisPoints/100, t.BasisPoints%100), "0"), ".") + "%"
	case t.Amount.IsZero():
		return ""
	}
	return t.Amount.String()
}

// ParseTolerance parses an amount in minor units ("500000"), a percentage up to 50 with up to two decimals ("0.5%"), or
// "" for the zero Tolerance.
func ParseTolerance(s string) (Tolerance, error) {
	if s == "" {
		return Tolerance{}, nil
	}
	percent, ok := strings.CutSuffix(s, "%")
	if !ok {
		a, err := ParseAmount(s)
		return Tolerance{Amount: a}, err
	}
	points, err := ParseDecimal(percent, 2)
	if err != nil {
		return Tolerance{}, fmt.Errorf("must be a percentage with at most two decimals, such as 0.5%%: %w", err)
	}
	if NewAmount(maxBasisPoints).Less(points) {
		return Tolerance{}, fmt.Errorf("must be at most %d%%", maxBasisPoints/100)
	}
	return Tolerance{BasisPoints: uint16(points.limb[0])}, nil
}
