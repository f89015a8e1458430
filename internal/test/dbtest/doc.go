// Package dbtest gives tests databases of both kinds, SQLite and PostgreSQL.
//
// Each runs one test on both. Postgres starts a PostgreSQL server when the first test asks for a database. StartCluster
// starts one for a single test or benchmark, which may kill it. QUITTANCE_TEST_POSTGRES can name a server to use
// instead of the shared one.
package dbtest
