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
 *   which consumers fill within a second. Statements that settle wait for the lock before.
 *
 * So no statement waits for the transaction of a program, and no message of a key waits forever.
 */

/** The lock of a lane and key. */
export const lockOf = (lane: string, key: string): string => `hashtextextended(${lane} || E'\\x01' || ${key}, 0)`

/** Whether the transaction got the lock of a lane and key. */
const got = (
  lock: "pg_try_advisory_xact_lock" | "pg_try_advisory_xact_lock_shared",
  lane: string,
  key: string
): string => `current_setting('transaction_isolation') = 'read committed' AND ${lock}(${lockOf(lane, key)})`

const isAlone = (lane: string, key: string): string => got("pg_try_advisory_xact_lock", lane, key)

/** As in the index. */
const blocked = "least(leased, 0) = -1"
const unblocked = "least(leased, 0) = 0"
const place = "coalesce(position, seq)"

/**
 * The steps of the schema. Planned for a table of any size: the server keeps the plans, also those that it made for an empty table.
 */
export const order = (schema: string): string => {
  const message = `${schema}.message`
  const vacancy = `INSERT INTO ${schema}.vacancy (lane, key) VALUES`
  const define = (head: string, body: string): string =>
    `CREATE FUNCTION ${schema}.${head} LANGUAGE plpgsql SET enable_seqscan = off AS $$\n${body}\n$$;`
  const trigger = (name: string, event: string, condition: string, call: string): string =>
    `CREATE TRIGGER ${name} ${event} ON ${message} FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION ${schema}.${call}();`
  const wasFirst = "OLD.lane IS NOT NULL AND OLD.leased <> -1"
  return [
    // Frees the next message of a key, if all are blocked. It does not wait for a row that is being removed.
    define(
      "advance(l text, k text) RETURNS void",
      `BEGIN
  UPDATE ${message} SET leased = 0, at = greatest(at, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
  WHERE seq = (
    SELECT seq FROM ${message} WHERE lane = l AND key = k AND ${blocked} ORDER BY ${place}, seq LIMIT 1 FOR UPDATE SKIP LOCKED
  ) AND NOT EXISTS (SELECT FROM ${message} WHERE lane = l AND key = k AND ${unblocked});
  IF NOT FOUND AND EXISTS (SELECT FROM ${message} WHERE lane = l AND key = k AND ${blocked})
    AND NOT EXISTS (SELECT FROM ${message} WHERE lane = l AND key = k AND ${unblocked}) THEN
    ${vacancy} (l, k);
  END IF;
END`
    ),
    define(
      "enter() RETURNS trigger",
      `BEGIN
  IF NEW.lane IS NULL AND NEW.metadata IS NULL THEN
    NEW.lane := NEW.queue;
  END IF;
  IF NEW.leased = -1 THEN
    NEW.leased := 0;
    IF ${got("pg_try_advisory_xact_lock_shared", "NEW.lane", "NEW.key")} THEN
      NEW.leased := CASE WHEN EXISTS (SELECT FROM ${message} WHERE lane = NEW.lane AND key = NEW.key) THEN -1 ELSE 0 END;
    END IF;
  END IF;
  RETURN NEW;
END`
    ),
    define(
      "leave() RETURNS trigger",
      `BEGIN
  IF ${isAlone("OLD.lane", "OLD.key")} THEN
    PERFORM ${schema}.advance(OLD.lane, OLD.key);
  ELSE
    ${vacancy} (OLD.lane, OLD.key);
  END IF;
  RETURN NULL;
END`
    ),
    // Whether a free message, which the transaction has locked, is the first of its key. A message that was never leased is not if an
    // earlier one is blocked: there is a vacancy. Another claim may have locked the others.
    define(
      "admit(s bigint, l text, k text, p bigint, is_new boolean) RETURNS boolean",
      `DECLARE
  others bigint;
  is_later boolean;
  is_alone boolean := false;
BEGIN
  LOOP
    SELECT count(*), coalesce(bool_or(leased > 0 OR queue <> lane OR (${place}, seq) < (p, s)), false) OR (is_new AND EXISTS (
      SELECT FROM ${message} WHERE lane = l AND key = k AND ${blocked} AND (${place}, seq) < (p, s)))
    INTO others, is_later FROM ${message} WHERE lane = l AND key = k AND ${unblocked} AND seq <> s;
    EXIT WHEN NOT is_later;
    IF is_alone THEN
      UPDATE ${message} SET leased = -1 WHERE seq = s;
      PERFORM ${schema}.advance(l, k);
      RETURN false;
    END IF;
    is_alone := ${isAlone("l", "k")};
    IF NOT is_alone THEN
      RETURN false;
    END IF;
  END LOOP;
  RETURN others = 0 OR others = (SELECT count(*) FROM (
    SELECT FROM ${message} WHERE lane = l AND key = k AND ${unblocked} AND seq <> s FOR NO KEY UPDATE SKIP LOCKED) locked);
END`
    ),
    // Fills vacancies, and returns their lanes. Not too many, because the server has a limited number of locks.
    define(
      "fill() RETURNS SETOF text",
      `DECLARE
  v record;
  filled integer := 0;
BEGIN
  FOR v IN SELECT id, lane, key FROM ${schema}.vacancy FOR UPDATE SKIP LOCKED LOOP
    IF ${isAlone("v.lane", "v.key")} THEN
      DELETE FROM ${schema}.vacancy WHERE id = v.id;
      PERFORM ${schema}.advance(v.lane, v.key);
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
