/**
 * The order of messages with a key, as functions and triggers of the schema. Of each lane and key, at least one message is not blocked,
 * and at most one is leased.
 *
 * - A row that blocks or frees another needs the lock of their lane and key, which lasts as long as the transaction. Each statement of
 *   a function sees what was committed before it, so also what the last holder of the lock has done. This is so in READ COMMITTED only.
 * - Sends of the adapter share the lock, and their rows are blocked if the lane has another of the key. Without the lock the row is
 *   free, as those of programs' transactions and of other programs always are: the claim decides.
 * - A claim takes the first message of a key. It blocks any other, or leaves it as it is without the lock.
 * - A row that leaves its lane, because it is deleted or has no lane any more, frees the next one. Without the lock, it leaves a vacancy,
 *   which consumers fill within a second. Statements that settle wait for the lock before, and free the next ones together.
 *
 * So no statement waits for the transaction of a program, and no message of a key waits forever.
 */

/** The lock of a lane and key. */
export const lockOf = (lane: string, key: string): string => `hashtextextended(${lane} || E'\\x01' || ${key}, 0)`

/** Whether the transaction got a lock, and sees what the last holder has done. */
export const got = (
  lock: string,
  how: "pg_try_advisory_xact_lock" | "pg_try_advisory_xact_lock_shared" = "pg_try_advisory_xact_lock"
): string => `current_setting('transaction_isolation') = 'read committed' AND ${how}(${lock})`

const isAlone = (lane: string, key: string): string => got(lockOf(lane, key))

/** Quotes code. It may have dollars, as the name of a schema may. */
export const dollars = (code: string): string => {
  let tag = "$$"
  while (code.includes(tag)) tag = `${tag.slice(0, -1)}_$`
  return `${tag}\n${code}\n${tag}`
}

/** Defines a function. The server keeps the plans that it made for an empty table, so none may scan the table. */
export const define = (schema: string, head: string, body: string, settings = ""): string =>
  `CREATE FUNCTION ${schema}.${head} LANGUAGE plpgsql SET enable_seqscan = off${settings} AS ${dollars(body)};`

/** As in the index. */
const isBlocked = (row: string): string => `least(${row}.leased, 0) = -1`
const isUnblocked = (row: string): string => `least(${row}.leased, 0) = 0`
const placeOf = (row: string): string => `coalesce(${row}.position, ${row}.seq), ${row}.seq`
const [blocked, unblocked, place] = [isBlocked("message"), isUnblocked("message"), placeOf("message")]

/** A statement that frees the next messages of those that it removes sets this to the level of its isolation. */
const setting = "requeue.settles"
export const settles = `set_config('${setting}', current_setting('transaction_isolation'), true)`

/**
 * The functions and triggers of the schema.
 *
 * Long, because it is a list.
 */
export const order = (schema: string): string => {
  const message = `${schema}.message`
  /** Whether a message `c` must wait for another, and how many others are not blocked. */
  const judged = (candidates: string): string => `SELECT c.seq, c.lane, c.key, o.* FROM ${candidates} c, LATERAL (
    SELECT count(*) AS others, coalesce(bool_or(o.leased > 0 OR o.queue <> o.lane OR (${placeOf("o")}) < (${placeOf("c")})), false)
      OR (c.token = 0 AND EXISTS (SELECT FROM ${message} b
        WHERE b.lane = c.lane AND b.key = c.key AND ${isBlocked("b")} AND (${placeOf("b")}) < (${placeOf("c")}))) AS is_later
    FROM ${message} o WHERE o.lane = c.lane AND o.key = c.key AND ${isUnblocked("o")} AND o.seq <> c.seq) o`
  const trigger = (name: string, event: string, condition: string, call: string): string =>
    `CREATE TRIGGER ${name} ${event} ON ${message} FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION ${schema}.${call}();`
  const wasFirst = `OLD.lane IS NOT NULL AND OLD.leased <> -1
  AND current_setting('${setting}', true) IS DISTINCT FROM 'read committed'`
  return [
    // Frees the next message of each key of which all are blocked. It does not wait for a row that is being removed.
    define(
      schema,
      "advance(lanes text[], keys text[]) RETURNS void",
      `DECLARE
  advanced integer;
BEGIN
  UPDATE ${message} SET leased = 0, at = greatest(at, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
  WHERE seq = ANY(ARRAY(
    SELECT next.seq FROM (SELECT DISTINCT * FROM unnest(lanes, keys) u(l, k)) u, LATERAL (
      SELECT seq FROM ${message} WHERE lane = l AND key = k AND ${blocked} ORDER BY ${place} LIMIT 1 FOR UPDATE SKIP LOCKED
    ) next
    WHERE NOT EXISTS (SELECT FROM ${message} WHERE lane = l AND key = k AND ${unblocked})));
  GET DIAGNOSTICS advanced = ROW_COUNT;
  IF advanced < cardinality(keys) THEN
    INSERT INTO ${schema}.vacancy (lane, key) SELECT * FROM unnest(lanes, keys) u(l, k)
    WHERE EXISTS (SELECT FROM ${message} WHERE lane = l AND key = k AND ${blocked})
      AND NOT EXISTS (SELECT FROM ${message} WHERE lane = l AND key = k AND ${unblocked});
  END IF;
END`
    ),
    define(
      schema,
      "enter() RETURNS trigger",
      `BEGIN
  IF NEW.lane IS NULL AND NEW.metadata IS NULL THEN
    NEW.lane := NEW.queue;
  END IF;
  IF NEW.leased = -1 THEN
    NEW.leased := 0;
    IF ${got(lockOf("NEW.lane", "NEW.key"), "pg_try_advisory_xact_lock_shared")} THEN
      NEW.leased := CASE WHEN EXISTS (SELECT FROM ${message} WHERE lane = NEW.lane AND key = NEW.key) THEN -1 ELSE 0 END;
    END IF;
  END IF;
  RETURN NEW;
END`
    ),
    define(
      schema,
      "leave() RETURNS trigger",
      `BEGIN
  IF ${isAlone("OLD.lane", "OLD.key")} THEN
    PERFORM ${schema}.advance(ARRAY[OLD.lane], ARRAY[OLD.key]);
  ELSE
    INSERT INTO ${schema}.vacancy (lane, key) VALUES (OLD.lane, OLD.key);
  END IF;
  RETURN NULL;
END`
    ),
    // Returns those of free messages, which the transaction has locked, that are the first of their keys. A message that was never leased
    // is not if an earlier one is blocked: there is a vacancy. Another claim may have locked the others. Transactions may have sent any
    // number of messages of a key: those after the first are blocked together, some at a time.
    define(
      schema,
      "admit(messages bigint[]) RETURNS SETOF bigint",
      `DECLARE
  m record;
  is_alone boolean;
  waiting integer;
BEGIN
  FOR m IN ${judged(`(SELECT DISTINCT ON (lane, key) * FROM ${message} WHERE seq = ANY(messages) ORDER BY lane, key, ${place})`)} LOOP
    is_alone := (m.others > 0 OR m.is_later) AND ${isAlone("m.lane", "m.key")};
    IF is_alone THEN
      UPDATE ${message} SET leased = -1 WHERE seq = ANY(ARRAY(
        SELECT seq FROM ${message} WHERE lane = m.lane AND key = m.key AND ${unblocked} AND leased = 0 AND queue = lane AND seq <> m.seq
        LIMIT 5000 FOR UPDATE SKIP LOCKED));
      GET DIAGNOSTICS waiting = ROW_COUNT;
      CONTINUE WHEN waiting = 5000;
      SELECT j.* INTO m FROM (${judged(message)} WHERE c.seq = m.seq) j;
    END IF;
    IF m.is_later AND is_alone THEN
      UPDATE ${message} SET leased = -1 WHERE seq = m.seq;
      PERFORM ${schema}.advance(ARRAY[m.lane], ARRAY[m.key]);
    ELSIF NOT m.is_later AND (m.others = 0 OR m.others = (SELECT count(*) FROM (
      SELECT FROM ${message} WHERE lane = m.lane AND key = m.key AND ${unblocked} AND seq <> m.seq
      FOR NO KEY UPDATE SKIP LOCKED) locked)) THEN
      RETURN NEXT m.seq;
    END IF;
  END LOOP;
END`
    ),
    // Fills vacancies, and returns their lanes. Not too many, because the server has a limited number of locks.
    define(
      schema,
      "fill() RETURNS SETOF text",
      `DECLARE
  v record;
  filled integer := 0;
BEGIN
  FOR v IN SELECT id, lane, key FROM ${schema}.vacancy FOR UPDATE SKIP LOCKED LOOP
    IF ${isAlone("v.lane", "v.key")} THEN
      DELETE FROM ${schema}.vacancy WHERE id = v.id;
      PERFORM ${schema}.advance(ARRAY[v.lane], ARRAY[v.key]);
      RETURN NEXT v.lane;
      filled := filled + 1;
      EXIT WHEN filled = 200;
    END IF;
  END LOOP;
END`
    ),
    trigger("enter", "BEFORE INSERT", "NEW.key IS NOT NULL", "enter"),
    trigger("leave", "AFTER DELETE", wasFirst, "leave"),
    trigger("leave_lane", "AFTER UPDATE OF lane", `${wasFirst} AND NEW.lane IS NULL`, "leave")
  ].join("\n")
}

/** The number of the other messages of a lane, which all wait for one of them. */
export const others = (message: string, lane: string, key: string): string =>
  `(SELECT count(*) - 1 FROM ${message} WHERE lane = ${lane} AND key = ${key})`

/** The number of the blocked messages of a lane. */
export const blockedOf = (message: string, lane: string): string =>
  `(SELECT count(*) FROM ${message} WHERE lane = ${lane} AND ${blocked})`

/** Up to `limit` of the blocked messages of a lane. */
export const someBlocked = (message: string, lane: string, limit: string): string =>
  `SELECT seq FROM ${message} WHERE lane = ${lane} AND queue = lane AND ${blocked} LIMIT ${limit} FOR UPDATE SKIP LOCKED`
