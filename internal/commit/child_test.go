package commit

func childRequested() bool { return false }
func childMain()           {}
