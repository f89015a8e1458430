package dispatcher

// Reasons are reasons, for its test.
var Reasons = reasons
