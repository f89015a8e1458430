package testdeps

import (
	"flag"
	"strconv"
)

// Parallel sets how many tests that call t.Parallel run at a time, unless the flag -parallel is given. The default is
// one for each CPU, which leaves CPUs idle while tests wait for other processes. Call it in TestMain.
func Parallel(tests int) {
	if !flag.Parsed() { // parsing again would undo the setting of Short
		flag.Parse() //nolint:revive // TestMain must parse before it asks for flags
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}
