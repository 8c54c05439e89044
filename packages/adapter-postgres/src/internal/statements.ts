/**
 * The statements of the adapter. Each is one transaction, and works on any connection: a pooler such as pgbouncer may run each on
 * another one.
 *
 * - Times are epoch milliseconds of the server, so the clocks of the clients do not matter.
 * - No statement waits for a row that another transaction has locked: that transaction may belong to a program, and stay open.
 * - Free messages with and without `fair_by` are in separate indices, so a queue without it pays nothing.
 * - Rows to change are found by `seq = ANY(ARRAY(…))`, for which the planner always uses the primary key.
 */
import { SqlMessage } from "@requeue/kit"
import { quoted } from "../PostgresSchema.ts"
import { blockedOf, lockOf, others as othersOf, settles, someBlocked } from "./connect/order.ts"
import { anyToken } from "./connect/token.ts"

/** The time of the statement, with fractions. */
const exact = "(extract(epoch FROM statement_timestamp()) * 1000)"
const now = `floor(${exact})::bigint`

/** When a message is due after a delay: never early; immediately without a delay. */
const dueAfter = (delay: string): string =>
  `(CASE WHEN ${delay} = 0 THEN ${now} ELSE ceil(${exact} + ${delay})::bigint END)`

/** Skips the wait for the disk in this transaction: a crash then only redelivers messages. */
const unsynced = "(SELECT set_config('synchronous_commit', 'off', true))"

/** Waits for the disk in this transaction, even if the server does not by default. */
const synced =
  "(SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off')"

const columns = `${SqlMessage.columns}, ${SqlMessage.lanes}, fair_by`

/** Conditions of free messages without and with `fair_by`, which have separate indices. */
const [unshared, shared] = ["leased = 0 AND fair_by IS NULL", "leased = 0 AND fair_by > ''"]

export type Statements = ReturnType<typeof make>

// Long, because it is a list.
export const make = (schema: string) => {
  const name = quoted(schema)
  const message = `${name}.message`
  const inbox = `${name}.inbox`
  const queue = `${name}.queue`
  const version = `${name}.version`
  const counted = (where: string): string => `(SELECT count(*) FROM ${message} WHERE queue = $1 AND ${where})`
  const countedFree = (where: string): string =>
    `${counted(`${unshared} AND ${where}`)} + ${counted(`${shared} AND ${where}`)}`
  const created = (names: string): string =>
    `INSERT INTO ${queue} (name) SELECT name FROM ${names} ON CONFLICT DO NOTHING`

  /**
   * $1 queues and $2 messages as JSON, $3 all bodies. Returns for each queue whether it is missing, and when its first message is
   * due.
   */
  const publish = (durability: string, leased: string): string => `
      WITH target AS MATERIALIZED (
        SELECT t.i, t.name, t.may, q.name IS NOT NULL AS present
        FROM ROWS FROM (json_to_recordset($1::text::json) AS (name text, may boolean)) WITH ORDINALITY AS t(name, may, i)
          LEFT JOIN ${queue} q ON q.name = t.name
      ), made AS (${created("target WHERE may AND NOT present")}),
      added AS (
        INSERT INTO ${message} (queue, at, metadata, headers, body, key, lane, position, fair_by, leased)
        SELECT t.name, ${dueAfter("m.delay")}, m.metadata, m.headers, substr($3::bytea, m.start, m.size),
          m.key, m.lane, m.position, m.fair_by, CASE WHEN m.lane IS NULL THEN 0 ELSE ${leased} END
        FROM ROWS FROM (
          json_to_recordset($2::text::json) AS (
            target int, delay float8, metadata text, headers text, start int, size int, key text, lane text, position bigint,
            fair_by text
          )
        ) WITH ORDINALITY AS m(target, delay, metadata, headers, start, size, key, lane, position, fair_by, i)
          JOIN target t ON t.i = m.target WHERE t.may OR t.present ORDER BY m.i
        RETURNING queue, at
      )
      SELECT (NOT t.may AND NOT t.present)::int AS missing, (SELECT min(at) FROM added a WHERE a.queue = t.name) AS first,
        ${durability} AS durability
      FROM target t ORDER BY t.i`

  /**
   * Changes delivered messages, whose handles are the arrays $1 and $2. Returns for each handle when its message
   * is due now, or NULL for one that was not changed, and whether it is still there because another transaction has it locked.
   * `former` finds one that was changed before, and `leaves` those that leave their lane: their locks are taken in the same order by
   * all statements, so two do not wait for each other.
   */
  const settle = (
    change: string,
    { more = "", isSynced = false, others = "", former = "NULL", leaves = "false" } = {}
  ): string => `
    WITH handle AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::int[]${more}) WITH ORDINALITY AS h(seq, token${others}, i)),
    held AS MATERIALIZED (
      SELECT m.seq, m.key, CASE WHEN ${leaves} THEN m.lane END AS lane
      FROM ${message} m JOIN handle h ON m.seq = h.seq AND m.token = h.token FOR UPDATE OF m SKIP LOCKED
    ), alone AS MATERIALIZED (
      SELECT count(pg_advisory_xact_lock(lock)), ${settles}
      FROM (SELECT DISTINCT ${lockOf("lane", "key")} AS lock FROM held WHERE lane IS NOT NULL ORDER BY lock) locks
    ), ${change}
    SELECT coalesce(c.at, ${former}), c.seq IS NULL AND EXISTS (SELECT FROM ${message} m WHERE m.seq = h.seq AND m.token = h.token),
      ${isSynced ? synced : unsynced}, (SELECT ${name}.advance(array_agg(lane), array_agg(key)) FROM held JOIN changed USING (seq)
        WHERE lane IS NOT NULL HAVING count(*) > 0)
    FROM handle h LEFT JOIN changed c ON c.seq = h.seq ORDER BY h.i`
  /** A copy that an attempt without an answer has stored: it has the next token. One that another consumer received has deliveries. */
  const replaced = `(SELECT m.at FROM ${message} m WHERE m.seq = h.seq AND m.token = h.token + 1 AND m.deliveries = 0)`
  const removed = `CASE WHEN NOT EXISTS (SELECT FROM ${message} m WHERE m.seq = h.seq) THEN 0 END`
  const areHeld = "seq = ANY(ARRAY(SELECT seq FROM held, alone))"
  /** The next message of the key is due now. */
  const deleted = `DELETE FROM ${message} WHERE ${areHeld} RETURNING seq, ${now} AS at`

  /** The first due messages of those in one index. */
  const dueOf = (free: string): string => `(
        SELECT seq, at, token, key, lane, position, fair_by FROM ${message}
        WHERE queue = $1 AND ${free} AND at <= ${now} AND (at, seq) > ($2::bigint, $3::bigint)
        ORDER BY at, seq LIMIT $4 FOR UPDATE SKIP LOCKED
      )`
  /** Returns the messages that were due, in order. One that was not leased has no token. */
  const claim = (due: string, token: string, more = ""): string => `
      WITH ${due}, taken AS (
        UPDATE ${message} SET leased = ceil(${exact} + $5)::bigint, token = ${token}, deliveries = deliveries + $6::int
        WHERE seq = ANY(ARRAY(SELECT seq FROM due WHERE lane IS NULL UNION ALL
          SELECT ${name}.admit(array_agg(seq)) FROM due WHERE lane IS NOT NULL HAVING count(*) > 0))
        RETURNING seq, token, deliveries, metadata, headers, body
      )
      SELECT d.seq, t.token, t.deliveries, d.at, t.metadata, t.headers, t.body, d.key, d.lane, d.position, d.fair_by, ${unsynced}${more}
      FROM due d LEFT JOIN taken t ON t.seq = d.seq ORDER BY d.at, d.seq`
  /** The time of the next delayed message of those in one index. */
  const nextOf = (free: string): string =>
    `(SELECT at FROM ${message} WHERE queue = $1 AND ${free} AND at > ${now} ORDER BY at, seq LIMIT 1)`
  /** Whether a queue has shares. The server keeps the plan of a function. */
  const hasShares = `${name}.has_shares($1)`
  /** $1 queue. Returns in how many milliseconds its next delayed message is due, whether it exists, and whether it has shares. */
  const next = (at: string, more: string): string =>
    `SELECT ${at} - ${now}, EXISTS (SELECT FROM ${queue} WHERE name = $1), ${more}`
  /** Some of the messages in one index, for a purge that has others already. */
  const someOf = (free: string, others: string): string =>
    `SELECT seq FROM ${message} WHERE queue = $1 AND ${free} LIMIT $2::bigint - (SELECT count(*) FROM ${others})
        FOR UPDATE SKIP LOCKED`
  /** Free messages of a queue. */
  const all = (columns: string, where: string): string => {
    const of = (free: string): string => `SELECT ${columns} FROM ${message} WHERE queue = $1 AND ${free} AND ${where}`
    return `${of(unshared)} UNION ALL ${of(shared)}`
  }

  return {
    publish: publish(synced, "-1"),
    /** In a program's transaction. */
    publishWithin: publish("NULL", "0"),
    /**
     * Claims messages without `fair_by`: $1 queue, $2 and $3 the position after which to begin, $4 limit, $5 lease, $6 whether that is a
     * delivery.
     */
    claim: claim(`due AS MATERIALIZED ${dueOf(unshared)}`, anyToken),
    /** Claims any messages: like `claim`, with the token $7 for all, and how many messages each of them holds up. */
    claimAs: claim(
      `one AS MATERIALIZED ${dueOf(unshared)}, other AS MATERIALIZED ${dueOf(shared)},
      due AS MATERIALIZED (SELECT * FROM (TABLE one UNION ALL TABLE other) either ORDER BY at, seq LIMIT $4)`,
      "$7::int",
      `, CASE WHEN d.lane IS NOT NULL THEN ${othersOf(message, "d.lane", "d.key")} END`
    ),
    /**
     * Claims messages of shares in turn: $1 queue, $2 the last share, $3 where the round began, $4 limit, $5 lease, $6 to $8 limits. The last
     * row has no message.
     */
    turn: `
      SELECT *, ${unsynced} FROM ${name}.turn($1, $2, $3, $4::int, $5, $6::int, $7::int, $8) ORDER BY at, seq`,
    /** $1 queue, $2 token of a claim that counted no delivery. Returns its messages to the queue, and when they were due. */
    unclaim: `
      WITH claimed AS MATERIALIZED (
        SELECT seq FROM ${message} WHERE queue = $1 AND leased > 0 AND token = $2 FOR UPDATE SKIP LOCKED
      )
      UPDATE ${message} SET leased = 0 WHERE seq = ANY(ARRAY(SELECT seq FROM claimed)) RETURNING at, ${unsynced}`,
    /** $1 queue. */
    hasShares: `SELECT ${hasShares}`,
    /** Of the messages without `fair_by`. */
    next: next(nextOf(unshared), hasShares),
    /** Of all messages. */
    nextTurn: next(`least(${nextOf(unshared)}, ${nextOf(shared)})`, "true"),
    /** Ends up to $1 leases that are over. Returns the queues, and when their messages were due. */
    expire: `
      WITH over AS MATERIALIZED (
        SELECT seq FROM ${message} WHERE leased > 0 AND leased <= ${now} ORDER BY leased LIMIT $1 FOR UPDATE SKIP LOCKED
      )
      UPDATE ${message} SET leased = 0 WHERE seq = ANY(ARRAY(SELECT seq FROM over)) RETURNING queue, at, ${unsynced}`,
    /**
     * $1 and $2 handles. Returns the removed ones. Fails if another transaction has locked one. It takes half of the time of
     * `remove`, which finds the locked ones.
     */
    removeUnlocked: `
      WITH setting AS MATERIALIZED (SELECT set_config('lock_timeout', '10', true), ${unsynced}),
      handle AS MATERIALIZED (SELECT h.* FROM setting, unnest($1::bigint[], $2::int[]) AS h(seq, token)),
      changed AS (DELETE FROM ${message} m USING handle h WHERE m.seq = h.seq AND m.token = h.token RETURNING m.seq)
      SELECT seq FROM changed`,
    remove: settle(`changed AS (${deleted})`, { leaves: "true" }),
    removeAgain: settle(`changed AS (${deleted})`, { former: removed, leaves: "true" }),
    /** $3 how many deliveries of each do not count. */
    giveBack: settle(
      `changed AS (
        UPDATE ${message} m SET leased = 0, token = m.token + 1, deliveries = deliveries - h.uncounted
        FROM handle h WHERE m.${areHeld} AND m.seq = h.seq RETURNING m.seq, m.at
      )`,
      { more: ", $3::int[]", others: ", uncounted" }
    ),
    /** $3 lease. */
    extend: settle(
      `changed AS (UPDATE ${message} SET leased = ceil(${exact} + $3)::bigint WHERE ${areHeld} RETURNING seq, at)`
    ),
    /** Frees messages whose earlier ones left their lanes in transactions without the lock. Returns the queues, and when they are due. */
    fill: `SELECT lane, ${now}, ${unsynced} FROM ${name}.fill() lane`,
    /** $3 queue, $4 delay, $5 metadata and $6 lane of each copy. */
    replace: settle(
      `made AS (${created(`(SELECT DISTINCT queue AS name FROM handle EXCEPT SELECT name FROM ${queue}) missing`)}),
      changed AS (
        UPDATE ${message} m SET queue = h.queue, at = ${dueAfter("h.delay")}, metadata = h.metadata, leased = 0, deliveries = 0,
          token = m.token + 1, lane = h.lane
        FROM handle h WHERE m.${areHeld} AND m.seq = h.seq RETURNING m.seq, m.at
      )`,
      {
        more: ", $3::text[], $4::float8[], $5::text[], $6::text[]",
        others: ", queue, delay, metadata, lane",
        leaves: "h.lane IS NULL",
        isSynced: true,
        former: replaced
      }
    ),
    /** $1 names. */
    declare: created(`(SELECT DISTINCT name FROM unnest($1::text[]) name EXCEPT SELECT name FROM ${queue}) missing`),
    /** $1 names. Returns the names of existing queues. */
    exist: `SELECT name FROM ${queue} WHERE name = ANY($1::text[])`,
    names: `SELECT name FROM ${queue} ORDER BY name`,
    /** $1 queue. A lease that is over makes its message ready. An index scan for each, because the table holds all queues. */
    count: `
      SELECT ${countedFree(`at <= ${now}`)} + ${counted(`leased > 0 AND leased <= ${now}`)},
        ${counted(`leased > 0 AND leased > ${now}`)}, ${countedFree(`at > ${now}`)},
        EXISTS (SELECT FROM ${queue} WHERE name = $1), ${blockedOf(message, "$1")}`,
    /** $1 queue. Returns in how many milliseconds each delayed message is due. */
    delays: all(`at - ${now}`, `at > ${now}`),
    /** $1 queue. */
    oldest: `${all(columns, `at <= ${now}`)} ORDER BY at, seq LIMIT 1`,
    /** $1 queue, $2 limit. First the blocked messages: a removal frees others. Returns the lanes. */
    purge: `
      WITH waiting AS MATERIALIZED (${someBlocked(message, "$1", "$2::bigint")}),
      batch AS MATERIALIZED (${someOf(unshared, "waiting")}), sharing AS MATERIALIZED (${someOf(shared, "(TABLE waiting UNION ALL TABLE batch) others")})
      DELETE FROM ${message} WHERE seq = ANY(ARRAY(TABLE waiting UNION ALL TABLE batch UNION ALL TABLE sharing)) RETURNING seq, lane`,
    /** $1 queue, $2 and $3 the position after which to begin, $4 limit. */
    delayed: `${all(columns, `at > ${now} AND (at, seq) > ($2::bigint, $3::bigint)`)} ORDER BY at, seq LIMIT $4`,
    /** $1 and $2 handles. */
    removeDelayed: settle(
      `changed AS (DELETE FROM ${message} WHERE ${areHeld} AND leased = 0 AND at > ${now} RETURNING seq, at)`,
      { isSynced: true, leaves: "true" }
    ),
    version: `SELECT version, id FROM ${version}`,
    isolation: "SELECT current_setting('default_transaction_isolation')",
    /** $1 schema. Whether there is a table for the version. */
    hasVersion: "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'version')",
    /** In a program's transaction: fails outside of one, and locks no more than the statements after it. */
    enter: `LOCK TABLE ${message} IN ROW EXCLUSIVE MODE`,
    /** In a program's transaction: returns the database and its server. */
    identity: `SELECT id, current_database(), (SELECT system_identifier::text FROM pg_control_system()) FROM ${version}`,
    /** In a program's transaction: $1 handles. Returns the held ones, and when the next messages of their keys are due. */
    ack: `
      DELETE FROM ${message} m USING json_to_recordset($1::text::json) AS h(seq bigint, token int)
      WHERE m.seq = h.seq AND m.token = h.token RETURNING m.seq, ${now}`,
    /**
     * In a program's transaction: $1 queue, $2 ids as JSON. Returns those that were not recorded before. It waits for transactions
     * that record one of them; in order, because two that record the same must not wait for each other.
     */
    record: `
      INSERT INTO ${inbox} (queue, id) SELECT $1, id FROM json_array_elements_text($2::text::json) AS u(id) ORDER BY id
      ON CONFLICT DO NOTHING RETURNING id`,
    /** $1 queues and $2 ids. Returns for each whether a committed transaction has recorded it. */
    recorded: `
      SELECT EXISTS (SELECT FROM ${inbox} i WHERE i.queue = u.queue AND i.id = u.id)
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(queue, id, n) ORDER BY n`,
    /** $1 age in milliseconds, $2 limit. By `ctid`, which takes less than half of the time: a row of this table never moves. */
    prune: `
      WITH outdated AS MATERIALIZED (
        SELECT ctid FROM ${inbox} WHERE at < ${now} - $1::float8 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
      )
      DELETE FROM ${inbox} WHERE ctid = ANY(ARRAY(SELECT ctid FROM outdated)) RETURNING 1, ${unsynced}`,
    /** $1 channel, $2 payload. */
    notify: `SELECT pg_notify($1, $2)::text, ${unsynced}`,
    /** In a program's transaction: the same. */
    notifyWithin: "SELECT pg_notify($1, $2)::text"
  }
}
