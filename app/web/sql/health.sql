-- name: schema_revision
-- Proves that the database answers, that the server's role may read, and which migrations have been applied.
select version_num from schema_version
