/**
 * The shares of a queue, as functions of the schema. The free messages with the same `fair_by` are a share, and so are those without one,
 * whose name is ''. A claim takes messages of the shares that follow the last one that was taken from. Its work depends on its limit,
 * never on how many messages or shares wait.
 *
 * - It finds the next share with one probe of an index, and takes as many probes as it may. If most shares are not due, it also takes
 *   from those with the earliest due messages, so it always finds some.
 * - The order of shares begins after ''; the messages without `fair_by` are the last share.
 * - With limits, it counts what is leased or was delivered under a lock of the share, which lasts until the claim is committed. It skips a
 *   share that another claim has locked. Each statement of a function sees what the last holder of the lock has done, in READ COMMITTED.
 */
import { define, got } from "./order.ts"
import { anyToken } from "./token.ts"

/** Shares that a claim probes, which limits its locks too. */
const maxProbes = 100

/** Due messages whose shares a claim takes after that. */
const maxEarliest = 100

/** Messages in excess of its limit that a claim passes because they wait for others of their keys. */
const maxPassed = 500

/** Milliseconds until a share that another claim has locked is tried again. */
const lockedPause = 10

/** Plans that depend on no value, because the server would plan each call anew. */
const settings = " SET plan_cache_mode = force_generic_plan"

const exact = "extract(epoch FROM statement_timestamp()) * 1000"

/**
 * The functions of the schema.
 *
 * Long, because it is a list.
 */
export const shares = (schema: string): string => {
  const message = `${schema}.message`
  const free = "queue = of_queue AND leased = 0"
  /** The next messages of a share. The caller has the conditions of its index. */
  const candidates = (isInShare: string): string => `ARRAY(SELECT seq FROM ${message} WHERE ${free} AND ${isInShare}
          AND at <= present AND (at, seq) > (s.at, s.seq) ORDER BY at, seq LIMIT part FOR UPDATE SKIP LOCKED)`
  /** When the first message without `fair_by` is due. */
  const unshared = `SELECT at, seq INTO due, first FROM ${message} WHERE ${free} AND fair_by IS NULL ORDER BY at, seq LIMIT 1;`
  return [
    define(
      schema,
      "has_shares(of_queue text) RETURNS boolean",
      `BEGIN
  RETURN EXISTS (SELECT FROM ${message} WHERE ${free} AND fair_by > '');
END`,
      settings
    ),
    // How many messages of a share may be claimed, and in how many milliseconds more may be, if that is known.
    define(
      schema,
      `places_of(of_queue text, share text, concurrency integer, rate integer, span float8, OUT places integer, OUT opens float8)`,
      `BEGIN
  IF NOT (${got("hashtextextended(of_queue || E'\\x02' || share, 0)")}) THEN
    places := 0;
    opens := ${lockedPause};
    RETURN;
  END IF;
  IF concurrency IS NOT NULL THEN
    SELECT concurrency - count(*) INTO places FROM (
      SELECT FROM ${message} WHERE queue = of_queue AND fair_by = share AND least(leased, 1) = 1 LIMIT concurrency) held;
  END IF;
  IF rate IS NOT NULL AND (places > 0 OR places IS NULL) THEN
    SELECT least(places, rate - coalesce(sum(messages), 0)), coalesce(min(at) - ${exact}, 0) + span
    INTO places, opens FROM ${schema}.delivery WHERE queue = of_queue AND fair_by = share AND at > ${exact} - span;
  END IF;
END`,
      settings
    ),
    // Claims messages of shares in turn, from the one after `after` to `origin`, where the round began. The last row has no message, but
    // the share that was seen last, whether the round is over, and after how many milliseconds a share that was skipped may have places.
    define(
      schema,
      `turn(of_queue text, after text, origin text, size integer, lease float8, concurrency integer, rate integer, span float8)
RETURNS TABLE (seq bigint, token integer, deliveries integer, at bigint, metadata text, headers text, body bytea, key text, lane text,
  "position" bigint, fair_by text, last text, is_whole boolean, pause float8)`,
      `#variable_conflict use_column
DECLARE
  present CONSTANT bigint := floor(${exact});
  probes integer := ${maxProbes};
  passes integer := size + ${maxPassed};
  is_last boolean := after < origin COLLATE "C";
  wanted integer := size;
  share text;
  due bigint;
  first bigint;
  earliest text[];
  is_all boolean;
  seen text[] := '{}';
  waiting ${schema}.share[];
  open ${schema}.share[] := '{}';
  s ${schema}.share;
  rest integer;
  part integer;
  found bigint[];
  keyed bigint[];
  picked bigint[] := '{}';
  m record;
BEGIN
  last := after;
  is_whole := false;
  WHILE NOT is_whole AND cardinality(open) < size LOOP
    probes := probes - 1;
    IF probes >= 0 THEN
      SELECT fair_by, at, seq INTO share, due, first FROM ${message} WHERE ${free} AND fair_by > last ORDER BY fair_by, at, seq LIMIT 1;
      IF share IS NULL AND NOT is_last THEN
        is_last := true;
        share := '';
        ${unshared}
      ELSIF share IS NULL OR (is_last AND share > origin COLLATE "C") THEN
        is_whole := true;
        EXIT;
      END IF;
      last := share;
      is_whole := is_last AND share = origin;
    ELSE
      IF probes = -1 THEN
        SELECT array_agg(f ORDER BY CASE WHEN f > last COLLATE "C" THEN 0 WHEN f = '' THEN 1 ELSE 2 END, f COLLATE "C"), sum(n) < ${maxEarliest}
        INTO earliest, is_all FROM (
          SELECT fair_by AS f, count(*) AS n FROM (
            SELECT fair_by FROM ${message} WHERE ${free} AND fair_by > '' AND at <= present ORDER BY at, seq LIMIT ${maxEarliest}) e
          GROUP BY fair_by UNION ALL SELECT '', 0) g;
      END IF;
      share := earliest[-probes];
      due := 0;
      first := 0;
      IF share = '' THEN
        ${unshared}
      END IF;
      IF share IS NULL THEN
        is_whole := is_all;
        EXIT;
      END IF;
    END IF;
    CONTINUE WHEN due IS NULL OR due > present OR share = ANY(seen);
    seen := seen || share;
    s := ROW(share, NULL, NULL, due, first - 1);
    IF share <> '' AND (concurrency IS NOT NULL OR rate IS NOT NULL) THEN
      SELECT * INTO s.places, s.opens FROM ${schema}.places_of(of_queue, share, concurrency, rate, span);
    END IF;
    IF s.places <= 0 THEN
      pause := least(pause, s.opens);
    ELSE
      open := open || s;
    END IF;
  END LOOP;
  IF is_whole AND probes >= 0 AND cardinality(open) > 0 THEN
    s := open[1];
    last := s.name;
  END IF;
  WHILE wanted > 0 AND passes > 0 AND cardinality(open) > 0 LOOP
    waiting := open;
    open := '{}';
    rest := cardinality(waiting);
    FOREACH s IN ARRAY waiting LOOP
      part := least((wanted + rest - 1) / rest, s.places, passes);
      rest := rest - 1;
      EXIT WHEN part = 0;
      IF s.name = '' THEN
        found := ${candidates("fair_by IS NULL")};
      ELSE
        found := ${candidates("fair_by = s.name")};
      END IF;
      keyed := '{}';
      due := cardinality(picked);
      FOR m IN SELECT seq, at, lane FROM ${message} WHERE seq = ANY(found) ORDER BY at, seq LOOP
        s.at := m.at;
        s.seq := m.seq;
        IF m.lane IS NULL THEN
          picked := picked || m.seq;
        ELSE
          keyed := keyed || m.seq;
        END IF;
      END LOOP;
      IF cardinality(keyed) > 0 THEN
        picked := picked || ARRAY(SELECT ${schema}.admit(keyed));
      END IF;
      passes := passes - cardinality(found);
      wanted := size - cardinality(picked);
      s.places := s.places - (cardinality(picked) - due);
      CONTINUE WHEN cardinality(found) < part;
      IF s.places = 0 THEN
        pause := least(pause, s.opens);
      ELSE
        open := open || s;
      END IF;
    END LOOP;
  END LOOP;
  RETURN QUERY UPDATE ${message} SET leased = ceil(${exact} + lease)::bigint, token = ${anyToken},
    deliveries = deliveries + 1 WHERE seq = ANY(picked)
    RETURNING seq, token, deliveries, at, metadata, headers, body, key, lane, "position", fair_by, NULL::text, NULL::boolean, NULL::float8;
  IF rate IS NOT NULL AND cardinality(picked) > 0 THEN
    INSERT INTO ${schema}.delivery (queue, fair_by, at, until, messages)
    SELECT of_queue, fair_by, t.at, ceil(t.at + span), count(*) FROM ${message},
      (SELECT ceil(extract(epoch FROM clock_timestamp()) * 1000) AS at) t WHERE seq = ANY(picked) AND fair_by IS NOT NULL GROUP BY fair_by, t.at;
    DELETE FROM ${schema}.delivery WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${schema}.delivery WHERE until < present ORDER BY until LIMIT 2 * size FOR UPDATE SKIP LOCKED));
  END IF;
  RETURN QUERY SELECT NULL::bigint, NULL::integer, NULL::integer, NULL::bigint, NULL::text, NULL::text, NULL::bytea, NULL::text, NULL::text,
    NULL::bigint, NULL::text, last, is_whole, pause;
END`,
      settings
    )
  ].join("\n")
}
