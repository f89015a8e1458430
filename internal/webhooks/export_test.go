package webhooks

// Reasons exports reasons for its test.
var Reasons = reasons
