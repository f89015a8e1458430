// Package storetest gives tests databases of both kinds, SQLite and PostgreSQL.
//
// Each runs one test on both. Postgres starts a PostgreSQL server when the
// first test asks for a database, and StartCluster starts one that a test or a
// benchmark has for itself and may pull the plug of. The tests do not depend on
// a server that somebody set up, but QUITTANCE_TEST_POSTGRES can name one.
package storetest
