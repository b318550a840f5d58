package record

import (
	"math"
	"strconv"
)

// AppendFloat appends a number in the form of encoding/json: the fewest digits that tell it
// from its neighbours, and an exponent only below 1e-6 and from 1e21 on. f is no NaN and not
// infinite, which JSON cannot express.
func AppendFloat(dst []byte, f float64) []byte {
	a := math.Abs(f)
	if f > 0 && f < 1e12 {
		// Most numbers are of up to three decimals. Fifteen digits or less are no two numbers'.
		if n := f * 1000; n == math.Trunc(n) && n/1000 == f {
			return appendThousandths(dst, uint64(n))
		}
	}
	if a != 0 && (a < 1e-6 || a >= 1e21) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if n := len(dst); dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' { // e-09
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendThousandths appends n/1000 without zeros at its end.
func appendThousandths(dst []byte, n uint64) []byte {
	dst = strconv.AppendUint(dst, n/1000, 10)
	rest := n % 1000
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}
