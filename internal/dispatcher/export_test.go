package dispatcher

// Reasons exports reasons for its test.
var Reasons = reasons
