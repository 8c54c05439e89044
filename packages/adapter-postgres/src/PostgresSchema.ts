/**
 * The tables of a PostgreSQL broker as SQL, for programs that may not create them.
 *
 * @example
 * ```ts
 * import { PostgresSchema } from "@requeue/adapter-postgres"
 *
 * PostgresSchema.sql("requeue").includes('CREATE TABLE "requeue".message') // => true
 * ```
 */

import { dollars, order } from "./internal/connect/order.ts"
import { shares } from "./internal/connect/shares.ts"

/** Quotes a name for SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/**
 * The steps from each version to the next; a schema's version is the number of steps that it has. Only add steps that
 * running processes of the previous version can work with: a process checks the version only when it starts.
 *
 * - `at`: when the message is due; for one without a delay, when it became ready. Epoch milliseconds of the server.
 * - `leased`: when the lease of its delivery ends; 0: no consumer has it; -1: it waits for an earlier message of its key.
 * - `token`: random for each lease, and grows with each settlement. A settlement with another token does nothing.
 * - `deliveries`: of this copy. `metadata`: NULL for a foreign message. `headers`: JSON; NULL: none.
 * - `key`: NULL: none. `lane`: the queue in whose order the message has its place; NULL: in none, as most dead letters.
 * - `position`: in its lane; NULL: `seq`. The copy of a dead letter has that of its original.
 * - `vacancy`: lanes and keys whose next message must be freed. Processes of version 2 consume messages with a key in any order.
 * - `fair_by`: whose message it is; NULL: no one's. Processes of version 3 consume messages in one order, and scan the table for them.
 * - `delivery`: how many messages of a share one claim with a rate limit delivered, when, and when its window ends.
 * - `inbox`: the messages of other brokers that a transaction has done, and when.
 *
 * The conditions of the indices differ, so the planner cannot take one of all shares or all leases for one of a share.
 *
 * CHECK, because one number that JavaScript cannot hold would stop the consumers of its queue. COLLATE "C", because the order of
 * other collations changes with the operating system, which damages indices.
 *
 * A claim and an ack leave a dead row each. Autovacuum must remove them by number, not by the share of a table whose size is that of
 * the backlog: with the default, a backlog of 10 million rows would collect two million dead ones first. No `fillfactor`: a claim
 * changes a column of two indices, so no update is HOT.
 */
const steps: ReadonlyArray<(schema: string) => string> = [
  (schema) => `CREATE TABLE ${schema}.queue (name text COLLATE "C" PRIMARY KEY);
CREATE TABLE ${schema}.message (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue text COLLATE "C" NOT NULL,
  at bigint NOT NULL DEFAULT floor(extract(epoch FROM statement_timestamp()) * 1000),
  leased bigint NOT NULL DEFAULT 0,
  token integer NOT NULL DEFAULT 0,
  deliveries integer NOT NULL DEFAULT 0,
  metadata text,
  headers text,
  body bytea NOT NULL,
  CHECK (least(at, leased, token, deliveries) >= 0 AND greatest(seq, at, leased) < 9007199254740991)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.5, toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 20000, toast.autovacuum_vacuum_cost_delay = 0);
CREATE INDEX message_ready ON ${schema}.message (queue, at, seq) WHERE leased = 0;
CREATE INDEX message_leased ON ${schema}.message (leased) WHERE leased > 0;`,
  (schema) => `CREATE TABLE ${schema}.inbox (
  queue text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  at bigint NOT NULL DEFAULT floor(extract(epoch FROM statement_timestamp()) * 1000),
  PRIMARY KEY (queue, id)
);
CREATE INDEX inbox_at ON ${schema}.inbox (at);`,
  (schema) => `ALTER TABLE ${schema}.message ADD COLUMN key text COLLATE "C", ADD COLUMN lane text COLLATE "C",
  ADD COLUMN position bigint, DROP CONSTRAINT message_check, ADD CONSTRAINT message_check CHECK (
    least(at, leased + 1, token, deliveries, position) >= 0 AND greatest(seq, at, leased, position) < 9007199254740991
    AND (leased >= 0 OR lane IS NOT NULL) AND (lane IS NULL OR key IS NOT NULL)) NOT VALID;
CREATE INDEX message_lane ON ${schema}.message (lane, key, least(leased, 0), coalesce(position, seq), seq) WHERE lane IS NOT NULL;
CREATE TABLE ${schema}.vacancy (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL
);
${order(schema)}`,
  (schema) => `ALTER TABLE ${schema}.message ADD COLUMN fair_by text COLLATE "C",
  ADD CONSTRAINT message_fair_by CHECK (length(fair_by) BETWEEN 1 AND 200) NOT VALID;
DROP INDEX ${schema}.message_ready;
CREATE INDEX message_ready ON ${schema}.message (queue, at, seq) WHERE leased = 0 AND fair_by IS NULL;
CREATE INDEX message_shared ON ${schema}.message (queue, at, seq) WHERE leased = 0 AND fair_by > '';
CREATE INDEX message_share ON ${schema}.message (queue, fair_by, at, seq) WHERE leased = 0 AND fair_by IS NOT NULL;
CREATE INDEX message_share_leased ON ${schema}.message (queue, fair_by) WHERE least(leased, 1) = 1 AND fair_by IS NOT NULL;
CREATE TABLE ${schema}.delivery (
  queue text COLLATE "C" NOT NULL,
  fair_by text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  until bigint NOT NULL,
  messages integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delivery_at ON ${schema}.delivery (queue, fair_by, at);
CREATE INDEX delivery_until ON ${schema}.delivery (until);
CREATE TYPE ${schema}.share AS (name text, places integer, opens float8, at bigint, seq bigint);
${shares(schema)}`
]

/** The version that this adapter needs. */
export const version = steps.length

/**
 * The statement that creates a schema, or migrates an older one. It waits for others that do so, and changes nothing in a schema of this
 * version or a newer one.
 */
export const migration = (schema: string): string => {
  const name = quoted(schema)
  const stepwise = steps.map((step, from) => `IF had <= ${from} THEN\n${step(name)}\nEND IF;`)
  const code = `DECLARE
  had integer;
BEGIN
PERFORM pg_advisory_xact_lock(hashtextextended(${literal(`requeue ${schema}`)}, 0));
IF to_regnamespace(${literal(name)}) IS NULL THEN
CREATE SCHEMA ${name};
END IF;
IF to_regclass(${literal(`${name}.version`)}) IS NULL THEN
CREATE TABLE ${name}.version (version integer NOT NULL, id uuid NOT NULL DEFAULT gen_random_uuid());
INSERT INTO ${name}.version (version) VALUES (0);
END IF;
had := (SELECT version FROM ${name}.version);
${stepwise.join("\n")}
UPDATE ${name}.version SET version = ${version} WHERE version < ${version};
END`
  return `DO ${dollars(code)};`
}

/**
 * Returns the SQL that creates or migrates the tables, for an administrator: after an upgrade, it is run again. `role` gets the permissions
 * of a program. Default: no role.
 */
export const sql = (schema = "requeue", role?: string): string => {
  const name = quoted(schema)
  const grants = (to: string) => `
GRANT USAGE ON SCHEMA ${name} TO ${to};
GRANT SELECT, INSERT, UPDATE, DELETE ON ${name}.message TO ${to};
GRANT SELECT, INSERT ON ${name}.queue TO ${to};
GRANT SELECT, INSERT, UPDATE, DELETE ON ${name}.inbox, ${name}.vacancy, ${name}.delivery TO ${to};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name} TO ${to};
GRANT SELECT ON ${name}.version TO ${to};`
  return `BEGIN;
${migration(schema)}${role === undefined ? "" : grants(quoted(role))}
COMMIT;
`
}
